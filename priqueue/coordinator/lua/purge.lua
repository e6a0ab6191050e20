-- purge: dead -> gone.
-- ARGV[5] call id   ARGV[6] caller   ARGV[7] reason   ARGV[8] buried at or before, ms ('' for whenever)   ARGV[9..] ids
-- Output: the ids that were purged: a letter that is gone, or was buried later, is left alone.   A repeat: the first answer
local before = answer_before(ARGV[5])
if before then return before end
local done, until_ms = {}, tonumber(ARGV[8])
check_letters()
for at = 9, #ARGV do
  local id = ARGV[at]
  local letter = letter_of(id)
  if letter and (not until_ms or letter.buried_at_ms <= until_ms) then
    local head = head_of(call('HGET', jobs, id))
    remove_letter(id, letter)
    call('HDEL', jobs, id)
    call('UNLINK', prefix .. 'trail:' .. id)
    emit('purge', ARGV[6], id, letter.lane, {head = head, outcome = 'gone', reason = ARGV[7]})
    count('purged', letter.lane)
    done[#done + 1] = id
  end
end
write_counts()
return keep_answer(ARGV[5], done)
