-- beat: a worker is alive and renews the leases it names. A lapsed lease that nobody reclaimed yet still stands.
-- ARGV[5] worker   ARGV[6] lease_ms   ARGV[7..] per lease: id, token
-- Output: {"ok", id…} the ids whose lease is lost | {"unregistered"}
if call('HEXISTS', workers, ARGV[5]) == 0 then return {'unregistered'} end
local answer = {'ok'}
for at = 7, #ARGV, 2 do
  local lease = lease_of(ARGV[at])
  if lease and lease.token == ARGV[at + 1] then
    write_lease(lease, now + tonumber(ARGV[6]))
  else
    answer[#answer + 1] = ARGV[at]
  end
end
call('HSET', heartbeats, ARGV[5], text(now))
return answer
