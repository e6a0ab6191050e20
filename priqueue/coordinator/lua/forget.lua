-- forget: workers that have not been heard of for long, and hold nothing, leave the records.
-- ARGV[5] silence in ms   ARGV[6] caller   ARGV[7..] worker ids to look at
-- Output: how many were forgotten
local forgotten = 0
for at = 7, #ARGV do
  local worker = ARGV[at]
  local beat = tonumber(call('HGET', heartbeats, worker)) -- none: another sweeper was faster
  if beat and beat + tonumber(ARGV[5]) < now and tonumber(call('HGET', slots, worker) or 0) <= 0 then
    for _, key in ipairs({workers, heartbeats, slots, claims}) do call('HDEL', key, worker) end
    emit('forget', ARGV[6], '', '', {outcome = 'gone', input = worker})
    forgotten = forgotten + 1
  end
end
return forgotten
