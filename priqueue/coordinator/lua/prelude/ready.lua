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
local function ghosts_in(ids, envelopes) -- at which places
  local held, buried, seen_before, places = on_many('HMGET', inflight, ids), on_many('HMGET', letters, ids), {}, {}
  for at, id in ipairs(ids) do
    if not envelopes[at] or held[at] or buried[at] or seen_before[id] then places[#places + 1] = at end
    seen_before[id] = true
  end
  return places
end
local function plan_ready(pool, room) -- the lane of each pick, its id and its envelope; beyond 1,000 ghosts none
  local ghosts = 0
  while true do
    local picks = plan(pool, room)
    local ids = heads_of(pool, picks)
    local envelopes = on_many('HMGET', jobs, ids)
    local places = ghosts_in(ids, envelopes)
    if #places == 0 then return picks, ids, envelopes end
    if ghosts >= 1000 then room = places[1] - 1 end -- what stands before the first of the others can be given
    for _, at in ipairs(ghosts < 1000 and places or {}) do
      call('LREM', picks[at].list, 1, ids[at])
      picks[at].length, ghosts = picks[at].length - 1, ghosts + 1
      count('ghosts', picks[at].name)
    end
  end
end
