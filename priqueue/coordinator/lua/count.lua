-- count: what a process had to count while the queue was away goes into the totals.
-- ARGV[5] call id   ARGV[6..] per count: event, lane, number
-- Output: 1.   A repeat changes nothing
local before = answer_before(ARGV[5])
if before then return before end
for at = 6, #ARGV, 3 do count(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])) end
write_counts()
return keep_answer(ARGV[5], 1)
