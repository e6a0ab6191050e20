-- report: the refusals of minutes that are over become audit events, one for each caller.
-- ARGV[5] limit, 1000 at most
-- Output: how many events
local limit, told = math.min(tonumber(ARGV[5]), 1000), 0
for _, range in ipairs({{'-inf', text(now - 60000)}, {'(' .. now_text, '+inf'}}) do
  for _, caller in ipairs(call('ZRANGEBYSCORE', refusals, range[1], range[2], 'LIMIT', 0, limit - told)) do
    tell_refusals(caller)
    told = told + 1
  end
end
return told
