-- form: a form of a page was sent. Who sends it first may act; whoever sends it again gets the outcome of that.
-- ARGV[5] token of the form   ARGV[6] id of this sending   ARGV[7] outcome to keep for an hour ('' to ask first)
-- Output: '' go on, this is the first sending, or it was kept | the outcome | the id of another sending, still at it
local key = prefix .. 'form:' .. ARGV[5]
local kept = ARGV[7] == '' and call('GET', key)
if kept and kept ~= ARGV[6] then return kept end
call('SET', key, ARGV[7] == '' and ARGV[6] or ARGV[7], 'EX', 3600)
return ''
