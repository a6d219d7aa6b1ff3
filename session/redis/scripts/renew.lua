#!lua flags=allow-oom
-- renew: extend my lease. A lease ends when somebody else claims, never by the
-- clock alone.
--
-- KEYS  session  sched    ARGV  session id, owner token, lease ms, ms until an owner is proven
-- returns -1 lease lost, or the newest event's seq, which also tells of mail
-- whose wake was lost
local s = redis.call('HMGET', KEYS[1], 'o', 'q', 'e', 't')
if s[1] ~= ARGV[2] then return -1 end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
-- An epoch is not before the time of its claim.
if tonumber(s[4] or '0') > 0 and now - tonumber(s[3] or '0') >= tonumber(ARGV[4]) then redis.call('HSET', KEYS[1], 't', 0) end
return tonumber(s[2] or '0')
