#!lua flags=allow-oom
-- forget: delete a session that nobody holds. An owner whose lease ran out does
-- not hold it, and will find itself fenced.
--
-- KEYS  session  state  inbox  sched  log    ARGV  session id
-- returns 0 gone, -1 held
local owner = redis.call('HGET', KEYS[1], 'o')
if owner and owner ~= '' then
  local t = redis.call('TIME')
  local due = redis.call('ZSCORE', KEYS[4], ARGV[1])
  if due and tonumber(due) > t[1] * 1000 + math.floor(t[2] / 1000) then return -1 end
end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[5])
redis.call('ZREM', KEYS[4], ARGV[1])
return 0
