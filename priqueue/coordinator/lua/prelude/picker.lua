-- picker: the rule of picker.py over the lanes of one worker's pool; tests hold the two together.
-- Output: none; pool_of, pick, write_credits, announce and is_suspect, for claim.lua
local function pool_of(wanted, weights)
  local pool = {name = table.concat(wanted, ','), lanes = {}}
  local is_wanted, weight_of = {}, string.gmatch(weights, '%d+')
  for _, name in ipairs(wanted) do is_wanted[name] = true end
  for _, name in ipairs(order) do
    local weight = tonumber(weight_of())
    if is_wanted[name] then
      local length = redis.pcall('LLEN', lanes[name].list)
      if type(length) ~= 'number' then -- a foreign value: this lane has no work, the others go on
        length = 0
        count('foreign', name)
      end
      if call('HEXISTS', paused, name) == 1 then length = 0 end
      local credit = tonumber(call('HGET', picker, pool.name .. ':' .. name) or 0)
      table.insert(pool.lanes, {name = name, list = lanes[name].list, weight = weight, length = length, credit = credit})
    end
  end
  return pool
end
local function pick(pool) -- the next lane, and whether every lane held work
  local full, busy = true, false
  for _, lane in ipairs(pool.lanes) do
    full, busy = full and lane.length > 0, busy or lane.length > 0
  end
  for _ = 1, busy and 2 or 0 do
    for _, lane in ipairs(pool.lanes) do
      if lane.length > 0 and lane.credit > 0 then
        lane.credit = lane.credit - 1
        return lane, full
      end
    end
    for _, lane in ipairs(pool.lanes) do lane.credit = lane.weight end
  end
end
local function write_credits(pool)
  for _, lane in ipairs(pool.lanes) do call('HSET', picker, pool.name .. ':' .. lane.name, lane.credit) end
end
local function announce(pool) -- where there is more, the next waiting worker shall hear of it
  for _, lane in ipairs(pool.lanes) do
    if lane.length > 0 then wake_lane(lane.name) end
  end
end
local function is_suspect(id) -- an "s" after the numbers: a process died of it, and of it alone
  return string.find(call('HGET', attempts, id) or '', 's') and 1 or 0
end
