#!lua flags=allow-oom
-- commit: the only way to change a session: state, cursor, dead letters and
-- lease in one fenced step.
--
-- KEYS  session  state  inbox  sched  dlq
-- ARGV  session id, owner token, version it builds on, cursor, lease ms, release 0/1,
--       next due in ms (-1 never), state version, state, then dead letters
-- returns 0 done, 1 was done before, -1 lease lost, -2 conflict, -3 bad cursor
local s = redis.call('HMGET', KEYS[1], 'o', 'l', 'v', 'c', 'q')
local version, old, seq = tonumber(s[3] or '0'), tonumber(s[4] or '0'), tonumber(s[5] or '0')
local expected, cursor, release = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[6] == '1'

-- The last commit was this very one: its answer was lost.
local done = s[2] == ARGV[2] and version == expected + 1
if s[1] ~= ARGV[2] then return done and release and 1 or -1 end
if version ~= expected then return done and 1 or -2 end
if cursor < old or cursor > seq then return -3 end

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('SET', KEYS[2], ARGV[9])
redis.call('HSET', KEYS[1], 'l', ARGV[2], 'v', version + 1, 'c', cursor, 'f', ARGV[8], 'o', release and '' or ARGV[2])
if release or cursor > old then redis.call('HSET', KEYS[1], 't', 0) end
for i = 10, #ARGV do redis.call('XADD', KEYS[5], 'MAXLEN', '~', 10000, '*', 'd', ARGV[i]) end

-- An empty stream costs more than the rest of an idle session. Deleting it
-- loses no position, for the ids come from seq.
if cursor == seq then redis.call('DEL', KEYS[3])
elseif cursor > old then redis.call('XTRIM', KEYS[3], 'MINID', string.format('%.0f-0', cursor + 1)) end

local due = tonumber(ARGV[7])
if not release then due = tonumber(ARGV[5])
elseif seq > cursor then due = 0 end -- mail came in between: stay due
if due < 0 then redis.call('ZREM', KEYS[4], ARGV[1])
else redis.call('ZADD', KEYS[4], now + due, ARGV[1]) end
if release and due == 0 then redis.call('PUBLISH', 'ship:wake', ARGV[1]) end
return 0
