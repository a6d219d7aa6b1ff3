#!lua flags=allow-oom
-- tell: correct an account's buckets by what the platform says of them. It does
-- not know yet of what was taken and is still on its way there, so a bucket is
-- corrected downwards only; that it fills up makes good the rest.
--
-- KEYS  quota (hash)    ARGV  ms of the window, ms in which nobody may take, then per bucket: limit (0 not told), rest
local t = redis.call('TIME')
local now, window = t[1] * 1000 + t[2] / 1000, tonumber(ARGV[1])
for i = 1, (#ARGV - 2) / 2 do
  local told, rest = tonumber(ARGV[1 + 2 * i]), tonumber(ARGV[2 + 2 * i])
  if told > 0 then
    local s = redis.call('HMGET', KEYS[1], 'l' .. i, 'n' .. i, 't' .. i)
    local limit = tonumber(s[1] or told)
    local filled = math.max(now - tonumber(s[3] or now), 0) * limit / window
    -- Of a limit that grew, what was added can be taken as well.
    local left = math.min(limit, tonumber(s[2] or rest) + filled) + math.max(told - limit, 0)
    redis.call('HSET', KEYS[1], 'l' .. i, ARGV[1 + 2 * i],
      'n' .. i, string.format('%.6f', math.min(left, rest)), 't' .. i, string.format('%.3f', now))
  end
end
local block = now + tonumber(ARGV[2])
if block > tonumber(redis.call('HGET', KEYS[1], 'b') or now) then
  redis.call('HSET', KEYS[1], 'b', string.format('%.3f', block))
end
-- Nothing that is said shortens a block that was said before.
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(2 * window + tonumber(ARGV[2]), redis.call('PTTL', KEYS[1]))))
return 0
