-- beat: a worker is alive and renews the leases it names. A lapsed lease that nobody reclaimed yet still stands.
-- One that comes half an interval late, or later, is counted: after two the leases are lost.
-- ARGV[5] worker   ARGV[6] lease_ms   ARGV[7..] per lease: id, token
-- Output: {"ok", id…} the ids whose lease is lost | {"unregistered"}
if call('HEXISTS', workers, ARGV[5]) == 0 then return {'unregistered'} end
local answer, lease_ms = {'ok'}, tonumber(ARGV[6])
local is_late = now - (tonumber(call('HGET', heartbeats, ARGV[5])) or now) >= lease_ms * 3 / 4
for at = 7, #ARGV, 2 do
  local lease = lease_of(ARGV[at])
  if lease and lease.token == ARGV[at + 1] then
    is_late = is_late or lease.deadline - now <= lease_ms / 4
    write_lease(lease, now + lease_ms)
  else
    answer[#answer + 1] = ARGV[at]
  end
end
call('HSET', heartbeats, ARGV[5], now_text)
if is_late then count('late_beats', '') end
write_counts()
return answer
