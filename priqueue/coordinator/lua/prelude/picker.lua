-- picker: the rule of picker.py over the lanes of one worker's pool; tests hold the two together.
-- Output: none; plan, for ready.lua
local function pick(pool) -- the next lane, and whether every lane held work
  local full, busy = true, false
  for _, lane in ipairs(pool) do
    local left = lane.length > lane.picked
    full, busy = full and left, busy or left
  end
  for _ = 1, busy and 2 or 0 do
    for _, lane in ipairs(pool) do
      if lane.length > lane.picked and lane.credits > 0 then
        lane.credits, lane.picked = lane.credits - 1, lane.picked + 1
        return lane, full
      end
    end
    for _, lane in ipairs(pool) do lane.credits = lane.weight end
  end
end
local function plan(pool, room) -- the lanes of the next picks, and whether every lane held work; nothing is taken yet
  for _, lane in ipairs(pool.lanes) do lane.credits, lane.picked, lane.full = lane.credit, 0, 0 end
  local picks = {}
  while #picks < room do
    local lane, full = pick(pool.lanes)
    if not lane then break end
    if full then lane.full = lane.full + 1 end
    picks[#picks + 1] = lane
  end
  return picks
end
