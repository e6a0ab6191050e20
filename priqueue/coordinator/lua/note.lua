-- note: an audit event that is no change of the queue: what somebody is about to do, what came of it, or was denied.
-- ARGV[5] call id   ARGV[6] action   ARGV[7] caller   ARGV[8] lane   ARGV[9] job   ARGV[10] handler   ARGV[11] input
-- ARGV[12] outcome   ARGV[13] reason   ARGV[14] correlation id
-- Output: 1.   A repeat changes nothing
local before = answer_before(ARGV[5])
if before then return before end
emit(ARGV[6], ARGV[7], ARGV[9], ARGV[8], {head = {handler = ARGV[10], correlation = ARGV[14]}, input = ARGV[11],
  outcome = ARGV[12], reason = ARGV[13]})
return keep_answer(ARGV[5], 1)
