-- duties: who has had a turn, and when: pages and metrics tell by it who is alive.
-- Output: none; saw. It never fails: no figure is worth half a transition
local function saw(duty)
  redis.pcall('HSET', seen, duty, now_text)
end
