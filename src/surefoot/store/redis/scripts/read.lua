-- Journals: {'ok', head, records, head, records, …}
local lost = missing()
if lost then
    return lost
end
local strict, first, last = ARGV[1] ~= '', num(), num()
local answer = {'ok'}
for i = at + 1, #ARGV do
    local journal = P .. 'j:' .. ARGV[i]
    local head = call('HGET', HEADS, ARGV[i])
    if strict and call('LLEN', journal) ~= length(head) then
        return {'lost', 'records', call('LLEN', journal), length(head), ARGV[i]}
    end
    answer[#answer + 1] = head and string.sub(head, 1, 40) or ''
    answer[#answer + 1] = call('LRANGE', journal, first, last)
end
return answer
