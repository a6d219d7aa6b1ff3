#!lua flags=allow-oom
-- take: take amounts from an account's buckets if all of them leave what is
-- held back, or tell when that will be. Buckets fill up within a window. Sent
-- twice, it may take twice: that errs on the safe side.
--
-- KEYS  quota (hash)    ARGV  ms of the window, share that is held back, then per bucket: amount, limit until one is told
-- returns ms to wait, 0 taken
local t = redis.call('TIME')
local now, window = t[1] * 1000 + t[2] / 1000, tonumber(ARGV[1])
local wait = tonumber(redis.call('HGET', KEYS[1], 'b') or now) - now
local limits, left = {}, {}
for i = 1, (#ARGV - 2) / 2 do
  local need = tonumber(ARGV[1 + 2 * i])
  local s = redis.call('HMGET', KEYS[1], 'l' .. i, 'n' .. i, 't' .. i)
  local limit = tonumber(s[1] or ARGV[2 + 2 * i])
  limits[i] = limit
  local filled = math.max(now - tonumber(s[3] or now), 0) * limit / window
  left[i] = math.min(limit, tonumber(s[2] or limit) + filled) - need
  local short = math.min(tonumber(ARGV[2]) * limit, limit - need) - left[i]
  if need > 0 and short > 0 then wait = math.max(wait, short * window / limit) end
end
if wait > 0 then return math.ceil(wait) end
for i = 1, #left do
  redis.call('HSET', KEYS[1], 'l' .. i, string.format('%.0f', limits[i]), 'n' .. i, string.format('%.6f', left[i]), 't' .. i, string.format('%.3f', now))
end
-- Two windows: it is full again after one. A block that is longer stays.
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(2 * window, redis.call('PTTL', KEYS[1]))))
return 0
