-- events: what a script says for the audit log, in the same step as the change.
-- Output: none; head_of, is_audited and emit
local function head_of(envelope) -- the only look into an envelope: its head is fixed and free of quotes
  local start = string.find(envelope or '', '{"v":', 1, true)
  local handler, caller, correlation = string.match(envelope or '',
    '^%d+,"name":"([^"]*)","caller":"([^"]*)","correlation_id":"([^"]*)"', start and start + 5)
  return {handler = handler or '', caller = caller or '', correlation = correlation or ''}
end
local asked = {user = true, key = true, command = true}
local function is_audited(caller)
  return audited == 'all' or audited == 'callers' and asked[string.match(caller, '^(%l+):')]
end
local begun = audited == 'off' or call('XLEN', audit) > 0 -- a foreign value there is an error now, before the first write
local function emit(action, caller, id, lane, event)
  if not is_audited(caller) then return end
  if not begun and call('EXISTS', audit) == 0 then call('SET', epoch, table.concat(call('TIME'), '-')) end
  begun = true
  local head = event.head or {}
  call('XADD', audit, '*', 'action', action, 'caller', caller, 'job', id, 'handler', head.handler or '', 'lane', lane,
    'input', event.input or '', 'outcome', event.outcome or '', 'reason', event.reason or '',
    'correlation_id', head.correlation or '', 'at', now_text)
end
