-- requeue: dead -> ready, at the tail of its lane, with all attempts before it again; the trail stays.
-- ARGV[5] call id   ARGV[6] caller   ARGV[7] reason   ARGV[8] buried at or before, ms ('' for whenever)
-- ARGV[9] run ('' for none)   ARGV[10] where it has to stand   ARGV[11] where it stands then   ARGV[12..] ids
-- Output: the ids that were requeued: a letter that is gone, was buried later or replaced, is left alone; all are where
--   the run stands elsewhere.   A repeat: the first answer
local before = answer_before(ARGV[5])
if before then return before end
local done, until_ms = {}, tonumber(ARGV[8])
check_letters()
if not run_stands(ARGV[9], ARGV[10]) then return done end
for at = 12, #ARGV do
  local id = ARGV[at]
  local letter, envelope = letter_of(id), call('HGET', jobs, id)
  if letter and envelope and not letter.replaced_by and (not until_ms or letter.buried_at_ms <= until_ms)
    and type(redis.pcall('LLEN', keys_of(letter.lane).list)) == 'number' then
    call('RPUSH', keys_of(letter.lane).list, id)
    call('HSET', since, id, now_text)
    remove_letter(id, letter)
    wake_lane(letter.lane)
    emit('requeue', ARGV[6], id, letter.lane, {head = head_of(envelope), outcome = 'ready', reason = ARGV[7]})
    count('requeued', letter.lane)
    done[#done + 1] = id
  end
end
run_on(ARGV[9], ARGV[11], #done, #ARGV - 11 - #done)
write_counts()
return keep_answer(ARGV[5], done)
