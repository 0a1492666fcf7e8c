-- Many runs, with everything that belongs to them. {'ok', last position; 0: no record was written, runs that are not as expected, by number, …};
-- {'stale'}: parts were deleted that the caller may rely on, and nothing was written.
local lost = missing()
if lost then
    return lost
end
local swept = arg()
if swept ~= '' and call('HGET', META, 'swept') ~= swept then
    return {'stale'}
end
local wishes, answer, torn = {}, {'ok', 0}, nil
local many = num()
for i = 1, many do
    local run, expected, count = arg(), arg(), num()
    local wish = {run = run, from = at + 1, count = count}
    at = at + count
    wish.lists, wish.row = arg(), arg()
    wish.head = call('HGET', HEADS, run)
    if (wish.head and string.sub(wish.head, 1, 40) or '') ~= expected then
        answer[#answer + 1] = i
    elseif call('LLEN', P .. 'j:' .. run) ~= length(wish.head) then
        torn = {'lost', 'records', call('LLEN', P .. 'j:' .. run), length(wish.head), run}
        answer[#answer + 1] = i -- its reader will see it; strangers in the batch go through
    else
        wishes[#wishes + 1] = wish
    end
end
if #wishes == 0 then
    return many == 1 and torn or answer
end
keep_parts()
local pos, woken, wrote = tonumber(call('HGET', META, 'pos')), false, false
for _, wish in ipairs(wishes) do
    local n
    pos, n = put(wish.run, length(wish.head), wish.head, pos, wish.from, wish.count)
    wrote = wrote or wish.count > 0
    if wish.lists ~= '' then
        woken = index(wish.run, wish.lists, wish.row, n) or woken
    end
end
call('HSET', META, 'pos', digits(pos))
announce(woken)
answer[2] = wrote and pos or 0
return answer
