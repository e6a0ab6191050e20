-- basics: what every script stands on; put in front of each of them, with leases.lua, when they are loaded.
-- KEYS[1..23]  the fixed keys of keys.py, in its order; then lane, delayed and wake of each lane in ARGV[4]
-- ARGV[1] prefix of all keys   ARGV[2] now in ms ('' for the server's clock)   ARGV[3] audit: all, callers, off
-- ARGV[4] lanes, comma-separated, in priority order; the script's own arguments follow
-- Output: none; these locals. A script reads, checks, writes, and closes with write_counts()
local audit, epoch, counters, jobs, attempts, since, inflight, deadlines, slots, claims, workers, heartbeats, sweep,
  picker, paused, wake_ticker, dead, letters, causes, holes, kept, trim, seen = unpack(KEYS, 1, 23)
local prefix, now, now_up, audited, call = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[2]), ARGV[3], redis.call
if not now then
  local time = call('TIME')
  now, now_up = time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000 + math.ceil(time[2] / 1000)
end
local function text(number) return string.format('%.0f', number) end
-- Rounded up: a wait that began in the middle of a millisecond must not end early. No wait is over at once.
local function due_after(wait_ms) return wait_ms == 0 and now or now_up + wait_ms end
local order, lanes = {}, {}
for name in string.gmatch(ARGV[4], '[^,]+') do
  local at = 23 + 3 * #order
  order[#order + 1] = name
  lanes[name] = {name = name, list = KEYS[at + 1], delayed = KEYS[at + 2], wake = KEYS[at + 3]}
end
local function keys_of(lane) -- a lane that has left the configuration is known by its jobs alone
  return lanes[lane] or {name = lane, list = prefix .. 'lane:' .. lane, delayed = prefix .. 'delayed:' .. lane,
    wake = prefix .. 'wake:' .. lane}
end
local tally = {}
local function count(event, lane, number)
  local field = event .. ':' .. lane
  tally[field] = (tally[field] or 0) + (number or 1)
end
local function write_counts()
  if not next(tally) then return end
  local series = prefix .. 'series:' .. text(now - now % 10000)
  for field, number in pairs(tally) do
    redis.pcall('HINCRBY', counters, field, number) -- no figure is worth half a transition
    redis.pcall('HINCRBY', series, field, number)
  end
  call('EXPIRE', series, 7200)
end
local function push_token(wake) -- pcall: a foreign value there must not fail a half-done transition
  if redis.pcall('LLEN', wake) == 0 then call('RPUSH', wake, 1) end
end
local function wake_lane(lane)
  if redis.pcall('HEXISTS', paused, lane) == 0 then push_token(keys_of(lane).wake) end
end
local function head_of(envelope) -- the only look into an envelope: its head is fixed and free of quotes
  local handler, caller, correlation = string.match(envelope or '',
    '^[^{]*{"v":%d+,"name":"([^"]*)","caller":"([^"]*)","correlation_id":"([^"]*)"')
  return {handler = handler or '', caller = caller or '', correlation = correlation or ''}
end
local asked = {user = true, key = true, command = true}
local function emit(action, caller, id, lane, event)
  if audited == 'off' or (audited == 'callers' and not asked[string.match(caller, '^(%l+):')]) then return end
  if call('EXISTS', audit) == 0 then call('SET', epoch, table.concat(call('TIME'), '-')) end
  local head = event.head or {}
  call('XADD', audit, '*', 'action', action, 'caller', caller, 'job', id, 'handler', head.handler or '', 'lane', lane,
    'input', event.input or '', 'outcome', event.outcome or '', 'reason', event.reason or '',
    'correlation_id', head.correlation or '', 'at', text(now))
end
