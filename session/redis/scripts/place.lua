#!lua flags=allow-oom
-- place: take a place for a box at work, or one in the line for them; or give
-- back what a session has. What becomes free goes to the first in the line who
-- may have it. Sent twice, it is once.
--
-- Nobody in the line may have a place until one is given back or its time is
-- over: only then is the line looked at, and no more than the first 500. Those
-- behind so many who may have none get theirs when they ask again.
--
-- KEYS  held (hash)  line (zset)  tickets (hash)
-- ARGV  session id, epoch; to take also: ms to keep a place, ms to keep that in the line, worker, person,
--       the most of a worker, of a person, of all (0: no limit), 1 at work already
-- returns place in the line (0: it has a place), the limit that is reached, other sessions that have got a place
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local id, epoch = ARGV[1], tonumber(ARGV[2])
local held, all, worker, person = {}, 0, {}, {}
local freed, given = false, {}

local function count(h, n)
  all = all + n
  worker[h.w] = (worker[h.w] or 0) + n
  person[h.p] = (person[h.p] or 0) + n
end

-- What is no JSON of ours is nothing.
local function decode(text)
  local ok, v = pcall(cjson.decode, text or '')
  return ok and type(v) == 'table' and v.u and v.e and v.w and v.p and v or nil
end

local function leave(who)
  redis.call('ZREM', KEYS[2], who)
  redis.call('HDEL', KEYS[3], who)
end

local function give(who, s)
  if held[who] then count(held[who], -1) end
  held[who] = {u = now + s.k, e = s.e, w = s.w, p = s.p}
  count(held[who], 1)
  redis.call('HSET', KEYS[1], who, cjson.encode(held[who]))
  leave(who)
end

local function full(s)
  if s.mp > 0 and (person[s.p] or 0) >= s.mp then return 'person' end
  if s.ma > 0 and all >= s.ma then return 'all' end
  if s.mw > 0 and (worker[s.w] or 0) >= s.mw then return 'worker' end
end

local function serve()
  if not freed then return end
  local line = redis.call('ZRANGE', KEYS[2], 0, 499)
  if #line == 0 then return end
  local tickets = redis.call('HMGET', KEYS[3], unpack(line))
  for i, who in ipairs(line) do
    local s = decode(tickets[i])
    if not s or s.u + 9 * s.l < now then
      leave(who)
    elseif s.ma > 0 and all >= s.ma then
      return
    elseif s.u > now and not full(s) then -- who is silent is passed over
      give(who, s)
      redis.call('PUBLISH', 'ship:wake', who)
      if who ~= id then given[#given + 1] = who end
    end
  end
end

local kept = redis.call('HGETALL', KEYS[1])
for i = 1, #kept, 2 do
  local h = decode(kept[i + 1])
  if h and h.u > now then
    held[kept[i]] = h
    count(h, 1)
  else
    redis.call('HDEL', KEYS[1], kept[i])
    freed = true
  end
end

local mine, waits = held[id], decode(redis.call('HGET', KEYS[3], id))
if #ARGV == 2 then
  if mine and mine.e <= epoch then
    count(mine, -1)
    held[id], freed = nil, true
    redis.call('HDEL', KEYS[1], id)
  end
  if waits and waits.e <= epoch then leave(id) end
  serve()
  return {0, '', given}
end

local s = {e = epoch, k = tonumber(ARGV[3]), l = tonumber(ARGV[4]), w = ARGV[5], p = ARGV[6],
  mw = tonumber(ARGV[7]), mp = tonumber(ARGV[8]), ma = tonumber(ARGV[9])}
s.u = now + s.l
if mine or ARGV[10] == '1' then
  if not mine or mine.e <= epoch then
    freed = freed or mine and (mine.w ~= s.w or mine.p ~= s.p)
    give(id, s)
  end
  serve()
  return {0, '', given}
end

if waits and waits.e > epoch then s = waits end -- another owner waits by now
redis.call('HSET', KEYS[3], id, cjson.encode(s))
if not redis.call('ZSCORE', KEYS[2], id) then
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
  redis.call('ZADD', KEYS[2], (last[2] or 0) + 1, id)
end
serve()
local why = full(s)
if not held[id] and not why then give(id, s) end
if held[id] then return {0, '', given} end
return {redis.call('ZRANK', KEYS[2], id) + 1, why, given}
