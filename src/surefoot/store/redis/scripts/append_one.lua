-- One record of one run, as nearly always. {'ok', position}; 0: the head is another one.
local lost = missing()
if lost then
    return lost
end
local run, expected = arg(), arg()
local head = call('HGET', HEADS, run)
if (head and string.sub(head, 1, 40) or '') ~= expected then
    return {'ok', 0}
end
if call('LLEN', P .. 'j:' .. run) ~= length(head) then
    return {'lost', 'records', call('LLEN', P .. 'j:' .. run), length(head), run}
end
local pos = put(run, length(head), head, tonumber(call('HGET', META, 'pos')), at + 1, 1)
call('HSET', META, 'pos', digits(pos))
return {'ok', pos}
