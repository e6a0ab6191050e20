-- pools: the lanes of one worker, with what they hold and the credits left to them, and how picks are taken from them.
-- Output: none; pool_of, take and announce, for claim.lua
local function pool_of(wanted, weights)
  local pool = {name = table.concat(wanted, ','), lanes = {}}
  local place_of, weight_of, fields = {}, string.gmatch(weights, '%d+'), {} -- who registered may have another order
  for at, name in ipairs(wanted) do place_of[name], fields[at] = at, pool.name .. ':' .. name end
  local credits, pauses = call('HMGET', picker, unpack(fields)), redis.pcall('HMGET', paused, unpack(wanted))
  for _, name in ipairs(order) do
    local weight = tonumber(weight_of())
    local at = place_of[name]
    if at then
      local length = redis.pcall('LLEN', lanes[name].list)
      if type(length) ~= 'number' then -- a foreign value: this lane has no work, the others go on
        length = 0
        count('foreign', name)
      end
      if pauses[at] then length = 0 end
      table.insert(pool.lanes, {name = name, list = lanes[name].list, wake = lanes[name].wake, weight = weight,
        length = length, credit = tonumber(credits[at]) or 0, field = fields[at]})
    end
  end
  return pool
end
local function take(pool) -- what was planned leaves its lanes
  local words = {}
  for _, lane in ipairs(pool.lanes) do
    words[#words + 1], words[#words + 2] = lane.field, lane.credits
    if lane.picked > 0 then
      call('LPOP', lane.list, lane.picked)
      count('picks', lane.name, lane.picked)
      if lane.full > 0 then count('picks_full', lane.name, lane.full) end
    end
  end
  call('HSET', picker, unpack(words))
end
local function announce(pool) -- where there is more, the next waiting worker shall hear of it
  for _, lane in ipairs(pool.lanes) do
    if lane.length > lane.picked then push_token(lane.wake) end
  end
end
