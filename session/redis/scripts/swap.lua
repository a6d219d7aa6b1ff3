#!lua flags=allow-oom
-- swap: replace a value of the vault if it is still the expected one. It may
-- run when memory is full: a renewed token that is not kept is lost.
--
-- KEYS  vault (hash)    ARGV  expected version (0 none), value ('' removes), ms to live (0 for good)
-- returns 1 swapped, 0 there is another
local s = redis.call('HMGET', KEYS[1], 'v', 'd')
local version = tonumber(s[1] or '0')
if version ~= tonumber(ARGV[1]) then
  -- What is there is what this very swap put there: its answer was lost.
  return (s[2] or '') == ARGV[2] and 1 or 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
  return 1
end
-- The time, in microseconds, makes versions rise over a value that was gone.
local t = redis.call('TIME')
redis.call('HSET', KEYS[1], 'v', string.format('%.0f', math.max(version + 1, t[1] * 1000000 + t[2])), 'd', ARGV[2])
if ARGV[3] == '0' then redis.call('PERSIST', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
