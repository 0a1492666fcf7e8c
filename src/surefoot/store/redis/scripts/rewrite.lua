-- Records in the place of others: all of these journals, or none. {'ok', last position}; 0: one is not as it was found.
local lost = missing()
if lost then
    return lost
end
local swept, adopting, beyond = arg(), arg() == '1', num()
if swept ~= '' and call('HGET', META, 'swept') ~= swept then
    return {'stale'}
end
local items = {}
for i = 1, num() do
    local run, found, keep, archive, forget, count = arg(), arg(), num(), arg() == '1', arg() == '1', num()
    local item = {run = run, keep = keep, archive = archive, forget = forget, count = count, from = at + 1}
    at = at + count
    item.lists, item.row = arg(), arg()
    item.head = call('HGET', HEADS, run)
    item.length = call('LLEN', P .. 'j:' .. run)
    if (item.head and string.sub(item.head, 1, 40) or '') ~= found or item.length < keep then
        return {'ok', 0}
    end
    if item.length ~= length(item.head) and not adopting then
        return {'lost', 'records', item.length, length(item.head), run}
    end
    items[i] = item
end
keep_parts()
local pos, woken = tonumber(call('HGET', META, 'pos') or 0), false
if beyond > 0 then
    -- Positions that somebody may have seen acknowledged are given up, with all that anybody can have reached.
    local first, last = pos + 1, math.max(pos, beyond) + 4294967296
    call('RPUSH', P .. 'adopted', eight(first) .. eight(last))
    pos = last
end
for _, item in ipairs(items) do
    local journal, kept = P .. 'j:' .. item.run, P .. 'q:' .. item.run
    local gone = call('LRANGE', journal, item.keep, -1)
    for _, record in ipairs(gone) do
        call('ZREM', P .. 'said', digits(number_at(record, 1)))
    end
    if item.forget then
        call('DEL', kept)
    end
    if item.archive then
        for _, record in ipairs(gone) do
            call('RPUSH', kept, record)
        end
        call('RPUSH', kept, eight(pos + 1) .. ARGV[item.from])
    end
    if item.keep == 0 then
        call('DEL', journal)
    else
        call('LTRIM', journal, 0, item.keep - 1)
    end
    local n
    pos, n = put(item.run, item.keep, item.head, pos, item.from, item.count)
    if item.lists ~= '' then
        woken = index(item.run, item.lists, item.row, n) or woken
    end
end
call('HSET', META, 'pos', digits(pos))
if adopting then
    call('HSET', META, 'runs', call('HLEN', HEADS))
end
announce(woken)
return {'ok', pos}
