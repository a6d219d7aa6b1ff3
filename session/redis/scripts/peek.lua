#!lua flags=no-writes,allow-oom
-- peek: a session as it is now.
--
-- KEYS  session  state  inbox    ARGV  most events
-- returns -1 unknown, or {now, epoch, version, cursor, stolen, tries, state, events}
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local s = redis.call('HMGET', KEYS[1], 'q', 'e', 'v', 'c', 's', 't')
if not s[1] then return -1 end
local n = {}
for i = 2, 6 do n[i] = tonumber(s[i] or '0') end
local events = redis.call('XRANGE', KEYS[3], string.format('%.0f-0', n[4] + 1), '+', 'COUNT', ARGV[1])
return {now, n[2], n[3], n[4], n[5], n[6], redis.call('GET', KEYS[2]), events}
