-- wake: puts back the tokens of lanes that hold work, by a worker that may have taken one and does not claim.
-- Lanes: those to look at.
-- Output: 1
for _, name in ipairs(order) do
  local length = redis.pcall('LLEN', lanes[name].list)
  if type(length) == 'number' and length > 0 then wake_lane(name) end
end
return 1
