#!lua flags=allow-oom
-- renew: extend my lease. A lease ends when somebody else claims, never by the
-- clock alone.
--
-- KEYS  session  sched    ARGV  session id, owner token, lease ms
-- returns -1 lease lost, or the newest event's seq, which also tells of mail
-- whose wake was lost
local s = redis.call('HMGET', KEYS[1], 'o', 'q')
if s[1] ~= ARGV[2] then return -1 end
local t = redis.call('TIME')
redis.call('ZADD', KEYS[2], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[3], ARGV[1])
return tonumber(s[2] or '0')
