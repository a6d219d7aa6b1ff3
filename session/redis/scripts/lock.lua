#!lua flags=allow-oom
-- lock: take a lock that is free, or mine already.
--
-- KEYS  lock    ARGV  holder, ms    returns 1 mine, 0 another's
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
