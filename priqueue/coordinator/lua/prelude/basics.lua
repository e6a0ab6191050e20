-- basics: what every script stands on. It is put in front of each when it is loaded, as is checks.lua where a script touches
-- leases or letters, and as are those parts whose functions it uses.
-- KEYS[1..25]  the fixed keys of keys.py, in its order; then lane, delayed and wake of each lane in ARGV[4]
-- ARGV[1] prefix of all keys   ARGV[2] now in ms ('' for the server's clock)   ARGV[3] audit: all, callers, off
-- ARGV[4] lanes, comma-separated, in priority order; the script's own arguments follow
-- Output: none; these locals. A script reads, checks, writes, and closes with write_counts()
local audit, epoch, counters, jobs, attempts, since, inflight, deadlines, slots, claims, workers, heartbeats, sweep,
  picker, paused, wake_ticker, dead, letters, causes, holes, kept, trim, seen, refusals, refused = unpack(KEYS, 1, 25)
local prefix, now, now_up, audited, call = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[2]), ARGV[3], redis.call
local now_us = now and now * 1000
if not now then
  local time = call('TIME')
  now, now_up = time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000 + math.ceil(time[2] / 1000)
  now_us = time[1] * 1000000 + time[2]
end
local function text(number) return string.format('%.0f', number) end
local now_text = text(now)
-- Rounded up: a wait that began in the middle of a millisecond must not end early. No wait is over at once.
local function due_after(wait_ms) return wait_ms == 0 and now or now_up + wait_ms end
local order, lanes = {}, {}
for name in string.gmatch(ARGV[4], '[^,]+') do
  local at = 25 + 3 * #order
  order[#order + 1] = name
  lanes[name] = {name = name, list = KEYS[at + 1], delayed = KEYS[at + 2], wake = KEYS[at + 3]}
end
local function keys_of(lane) -- a lane that has left the configuration is known by its jobs alone
  return lanes[lane] or {name = lane, list = prefix .. 'lane:' .. lane, delayed = prefix .. 'delayed:' .. lane,
    wake = prefix .. 'wake:' .. lane}
end
local tally, sums = {}, {} -- sums: of the totals alone, no chart shows them
local function count(event, lane, number)
  local field = event .. ':' .. lane
  tally[field] = (tally[field] or 0) + (number or 1)
end
local function write_counts()
  if not next(tally) then return end
  local series, is_new = prefix .. 'series:' .. text(now - now % 10000), false
  for field, number in pairs(tally) do
    redis.pcall('HINCRBY', counters, field, number) -- no figure is worth half a transition
    if redis.pcall('HINCRBY', series, field, number) == number then is_new = true end
  end
  for field, number in pairs(sums) do redis.pcall('HINCRBY', counters, field, number) end
  if is_new then call('EXPIRE', series, 7200) end -- once a bucket is enough, and the first to count in it is new to it
end
local function push_token(wake) -- pcall: a foreign value there must not fail a half-done transition
  if redis.pcall('LLEN', wake) == 0 then call('RPUSH', wake, 1) end
end
local function wake_lane(lane)
  if redis.pcall('HEXISTS', paused, lane) == 0 then push_token(keys_of(lane).wake) end
end
