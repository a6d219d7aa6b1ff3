#!lua flags=allow-oom
-- unlock: give a lock back that is still mine.
--
-- KEYS  lock    ARGV  holder
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 0
