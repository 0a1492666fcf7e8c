-- A new store, unless there is one. {'ok', 1}: it was made.
if call('EXISTS', META) == 1 then
    return {'ok', 0}
end
local id = string.match(call('INFO', 'server'), 'run_id:(%x+)') or ''
call('HSET', META, 'format', arg(), 'store', arg(), 'pos', '0', 'runs', '0', 'swept', '0', 'server', id, 'up', '0')
return {'ok', 1}
