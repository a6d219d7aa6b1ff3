#!lua flags=no-writes,allow-oom
-- due: the sessions of one shard that somebody must look at now, by the
-- server's clock, the longest waiting first, with the time they wait since.
--
-- KEYS  sched    ARGV  limit
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
