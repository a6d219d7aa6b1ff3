#!lua flags=allow-oom
-- spend: add to an account and return its totals. It may run when memory is
-- full, for a turn that cannot be counted could not end either.
--
-- KEYS  account    ARGV  calls, input tokens, output tokens, millionths of a dollar, ms to live
local total = {}
for i, field in ipairs({'c', 'i', 'o', 'u'}) do
  total[i] = redis.call('HINCRBY', KEYS[1], field, ARGV[i])
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return total
