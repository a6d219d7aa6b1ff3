#!lua
-- ingest: dedupe, append, make due and wake, for a group of deliveries. Each
-- of them happens wholly or not at all, in the order given.
--
-- There is no allow-oom flag: a full Redis refuses new work and nothing else.
--
-- KEYS  per delivery: session (hash), inbox (stream), sched (zset), then its dedupe keys
-- ARGV  per delivery: session id, number of dedupe keys, ms to remember them, 1 if only for a session that there is, event version, event as JSON
-- returns per delivery: {1, seq} appended, {0, seq} seen before, {2, 0} no such session, {-1, error}
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

local function take(k, a)
  local sid, dedupe = ARGV[a], tonumber(ARGV[a + 1])
  for i = k + 3, k + 2 + dedupe do
    local seen = redis.call('GET', KEYS[i])
    if seen then return {0, tonumber(seen)} end
  end
  local s = redis.call('HMGET', KEYS[k], 'q', 'o')
  if not s[1] and ARGV[a + 3] == '1' then return {2, 0} end
  local seq = tonumber(s[1] or '0') + 1
  -- The first write is the only one that can fail: an error does not undo what
  -- a script wrote before it.
  redis.call('XADD', KEYS[k + 1], string.format('%.0f-0', seq), 'v', ARGV[a + 4], 'at', now, 'e', ARGV[a + 5])
  redis.call('HSET', KEYS[k], 'q', seq)
  for i = k + 3, k + 2 + dedupe do redis.call('SET', KEYS[i], seq, 'PX', ARGV[a + 2]) end
  -- A session that is held stays scheduled for the end of its lease.
  if not s[2] or s[2] == '' then redis.call('ZADD', KEYS[k + 2], 'LT', now, sid) end
  redis.call('PUBLISH', 'ship:wake', sid)
  return {1, seq}
end

local out, k = {}, 1
for a = 1, #ARGV, 6 do
  local ok, r = pcall(take, k, a)
  out[#out + 1] = ok and r or {-1, type(r) == 'table' and r.err or tostring(r)}
  k = k + 3 + tonumber(ARGV[a + 1])
end
return out
