-- histograms: how long jobs waited and ran, counted by range, for those who watch.
-- "wait_le_100:high" counts what took 100 ms at most and more than the bound below; "wait_ms:high" is the sum of all.
-- Output: none; observe and observe_since
local bounds = {5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 900000, 3600000} -- as histograms.py
local observed, write_tally = {wait = {}, lateness = {}, run = {}}, write_counts -- by lane: numbers by range, and a sum
local function observe(what, lane, ms) -- nil is what nobody measured
  if not ms then return end
  local at, of_lane = 1, observed[what][lane]
  while bounds[at] and ms > bounds[at] do at = at + 1 end
  if not of_lane then
    of_lane = {sum = 0}
    observed[what][lane] = of_lane
  end
  of_lane[at], of_lane.sum = (of_lane[at] or 0) + 1, of_lane.sum + ms
end
write_counts = function() -- names are made once for all jobs of a script
  for what, lanes_of in pairs(observed) do
    for lane, of_lane in pairs(lanes_of) do
      sums[what .. '_ms:' .. lane], of_lane.sum = of_lane.sum, nil
      for at, number in pairs(of_lane) do count(what .. '_le_' .. (bounds[at] or 'inf'), lane, number) end
    end
  end
  write_tally()
end
local function born_of(id) -- the time in a UUIDv7, by the clock of who enqueued it; nil for another id
  local high, low = string.match(id, '^(%x%x%x%x%x%x%x%x)%-(%x%x%x%x)%-7')
  return high and tonumber(high, 16) * 65536 + tonumber(low, 16)
end
local function observe_since(id, record, lane) -- a claimed job waited since it was ready, and is late since it was due
  local ready, due = string.match(record or '', '^(%d+) ?(%d*)$')
  local ready_ms, due_ms = tonumber(ready) or born_of(id), tonumber(due or '')
  observe('wait', lane, ready_ms and math.max(0, now - ready_ms))
  observe('lateness', lane, due_ms and math.max(0, now - due_ms))
  return ready or ''
end
