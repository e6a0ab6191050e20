-- ready: what a claim would give, and only that: an id at the head of a lane that stands for no ready job is a ghost. It
-- leaves its lane, the picks are planned anew, and so it costs the lane no share.
-- Output: none; plan_ready, for claim.lua
local function heads_of(pool, picks) -- the ids of the picks, in their order
  local heads, ids = {}, {}
  for _, lane in ipairs(pool.lanes) do
    heads[lane] = lane.picked > 0 and call('LRANGE', lane.list, 0, lane.picked - 1)
    lane.at = 0
  end
  for at, lane in ipairs(picks) do
    lane.at = lane.at + 1
    ids[at] = heads[lane][lane.at]
  end
  return ids
end
local function drop_ghosts(picks, ids, envelopes) -- how many
  local held, buried, seen_before, ghosts = on_many('HMGET', inflight, ids), on_many('HMGET', letters, ids), {}, 0
  for at, id in ipairs(ids) do
    if not envelopes[at] or held[at] or buried[at] or seen_before[id] then
      local lane = picks[at]
      call('LREM', lane.list, 1, id)
      lane.length, ghosts = lane.length - 1, ghosts + 1
      count('ghosts', lane.name)
    end
    seen_before[id] = true
  end
  return ghosts
end
local function plan_ready(pool, room) -- the lane of each pick, its id and its envelope; after 1,000 ghosts none
  local ghosts = 0
  while true do
    local picks = plan(pool, ghosts < 1000 and room or 0)
    local ids = heads_of(pool, picks)
    local envelopes = on_many('HMGET', jobs, ids)
    local found = drop_ghosts(picks, ids, envelopes)
    if found == 0 then return picks, ids, envelopes end
    ghosts = ghosts + found
  end
end
