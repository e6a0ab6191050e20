-- ack: in flight -> gone. Many leases; one that is lost does not hold up the others.
-- ARGV[5] 1 for a repeat   ARGV[6..] per lease: id, token, ms it ran ('' for unknown)
-- Output: per lease 1 done | 0 done already (a repeat, and the job is gone) | -1 the lease is lost, nothing changed
local ids, answer, done, by_worker, trails = {}, {}, {}, {}, {}
for at = 6, #ARGV, 3 do ids[#ids + 1] = ARGV[at] end
local records = on_many('HMGET', inflight, ids)
local envelopes = audited == 'all' and on_many('HMGET', jobs, ids)
for number, id in ipairs(ids) do
  local at, lease = 3 + 3 * number, lease_in(records[number], id)
  if lease and lease.token == ARGV[at + 1] and not done[id] then
    lease.ms, lease.envelope = tonumber(ARGV[at + 2]), envelopes and envelopes[number]
    done[id] = true
    add_to(by_worker, lease.worker, lease)
    trails[#trails + 1] = prefix .. 'trail:' .. id
    answer[#answer + 1] = 1
  else
    answer[#answer + 1] = ARGV[5] == '1' and (done[id] or call('HEXISTS', jobs, id) == 0) and 0 or -1
  end
end
for worker, leases in pairs(by_worker) do
  local its = {}
  for at, lease in ipairs(leases) do its[at] = lease.id end
  end_leases(its, worker) -- first: where it fails, nothing of this worker's is told or counted
  on_many('HDEL', jobs, its)
  on_many('HDEL', attempts, its)
  for _, lease in ipairs(leases) do
    if envelopes then
      emit('ack', 'worker:' .. worker, lease.id, lease.lane, {head = head_of(lease.envelope), outcome = 'done'})
    end
    count('acked', lease.lane)
    observe('run', lease.lane, lease.ms)
  end
end
for at = 1, #trails, 1000 do call('UNLINK', unpack(trails, at, math.min(at + 999, #trails))) end
write_counts()
return answer
