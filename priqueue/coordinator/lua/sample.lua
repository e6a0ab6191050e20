-- sample: the gauges of this moment go into the series, for the charts.
-- ARGV[5..] per gauge: field, value
-- Output: 1
local series = prefix .. 'series:' .. text(now - now % 10000)
for at = 5, #ARGV, 2 do call('HSET', series, ARGV[at], ARGV[at + 1]) end
call('EXPIRE', series, 7200)
return 1
