#!lua flags=allow-oom
-- claim: take a due session under a new owner token, a higher epoch and a due
-- time one lease away.
--
-- KEYS  session  state  inbox  sched
-- ARGV  session id, owner token, lease ms, most events, newest state version, newest event version
-- returns -1 not due, -2 too new, or what peek returns
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local s = redis.call('HMGET', KEYS[1], 'o', 'e', 'c', 'f', 'v', 's', 't')
local owner, epoch, cursor = s[1] or '', tonumber(s[2] or '0'), tonumber(s[3] or '0')

-- Our own token: the claim was done and its answer was lost.
local mine = owner == ARGV[2]
if not mine then
  local due = redis.call('ZSCORE', KEYS[4], ARGV[1])
  if not due or tonumber(due) > now then return -1 end
end

local events = redis.call('XRANGE', KEYS[3], string.format('%.0f-0', cursor + 1), '+', 'COUNT', ARGV[4])
if tonumber(s[4] or '0') > tonumber(ARGV[5]) then return -2 end
for _, e in ipairs(events) do
  -- What is no number is no event of ours: the caller puts it aside.
  if (tonumber(e[2][2]) or 0) > tonumber(ARGV[6]) then return -2 end
end

local stolen, tries = tonumber(s[6] or '0'), tonumber(s[7] or '0')
if not mine then
  stolen, tries = owner ~= '' and 1 or 0, tries + 1
  epoch = math.max(epoch + 1, now) -- rises even after a restore from an old backup
  redis.call('HSET', KEYS[1], 'o', ARGV[2], 'e', epoch, 's', stolen, 't', tries)
end
redis.call('ZADD', KEYS[4], now + ARGV[3], ARGV[1])
return {now, epoch, tonumber(s[5] or '0'), cursor, stolen, tries, redis.call('GET', KEYS[2]), events}
