-- Questions about the store as a whole: what each asks for, after the proof that nothing is missing.
local lost = missing()
if lost then
    return lost
end

local function on_record(pos)
    local key, offset = on_trail(pos)
    local trail = call('GETRANGE', key, offset, offset + 23)
    return #trail == 24 and number_at(trail, 17) > 0 and trail or nil
end

-- The records at these positions, as far as they are there: run, record, run, record, …
local function at_positions(positions, answer)
    for _, pos in ipairs(positions) do
        local trail = on_record(pos)
        local run = trail and call('HGET', P .. 'order', digits(number_at(trail, 9)))
        local record = run and call('LINDEX', P .. 'j:' .. run, number_at(trail, 17) - 1)
        if record and number_at(record, 1) == pos then
            answer[#answer + 1] = run
            answer[#answer + 1] = record
        end
    end
    return answer
end

local ask = {}

function ask.pos()
    return {'ok', tonumber(call('HGET', META, 'pos') or 0)}
end

function ask.swept()
    return {'ok', call('HGET', META, 'swept')}
end

-- {'ok', where to go on; 0: nowhere, run, record, …}
function ask.scan()
    local after, many, newest = num(), num(), tonumber(call('HGET', META, 'pos') or 0)
    local last = math.min(after + many, newest)
    local positions = {}
    for pos = after + 1, last do
        if not on_record(pos) then
            local skipped = given_up(pos)
            if skipped then
                last = skipped
                break
            end
        end
        positions[#positions + 1] = pos
    end
    return at_positions(positions, {'ok', last < newest and last or 0})
end

-- {'ok', where to go on; 0: nowhere, run, record, …}
function ask.said()
    local before, many = arg(), num()
    local found = call('ZREVRANGEBYSCORE', P .. 'said', '(' .. before, '-inf', 'LIMIT', 0, many)
    local positions = {}
    for i, pos in ipairs(found) do
        positions[i] = tonumber(pos)
    end
    return at_positions(positions, {'ok', #found == many and tonumber(found[many]) or 0})
end

function ask.quarantined()
    return {'ok', call('LRANGE', P .. 'q:' .. arg(), 0, -1)}
end

function ask.names()
    local first, behind = arg(), arg()
    if first == '' then
        return {'ok', call('ZRANGE', P .. 'names', 0, -1), call('HKEYS', HEADS)}
    end
    return {'ok', call('ZRANGEBYLEX', P .. 'names', '[' .. first, '(' .. behind)}
end

function ask.parts()
    local answer = {'ok'}
    for i = at + 1, #ARGV do
        answer[#answer + 1] = call('HGET', P .. 'parts', ARGV[i]) or ''
    end
    return answer
end

function ask.part_ids()
    return {'ok', call('HKEYS', P .. 'parts')}
end

function ask.discard()
    local upto = num()
    if tonumber(call('HGET', META, 'pos')) > upto then
        return {'ok', 0}
    end
    for i = at + 1, #ARGV do
        call('HDEL', P .. 'parts', ARGV[i])
    end
    call('HINCRBY', META, 'swept', 1)
    return {'ok', 1}
end

function ask.place()
    local head = call('HGET', HEADS, arg())
    return {'ok', head and number_at(head, 41) or 0}
end

-- A page of the run list, before a place; of the shortest of these lists, if any are named. {'ok', run, place, row, …}
function ask.page()
    local before, many, key = arg(), num(), P .. 'made'
    local shortest
    for i = at + 1, #ARGV do
        local size = call('ZCARD', P .. 'in:' .. ARGV[i])
        if not shortest or size < shortest then
            shortest, key = size, P .. 'in:' .. ARGV[i]
        end
    end
    local found = call('ZREVRANGEBYSCORE', key, '(' .. before, '-inf', 'WITHSCORES', 'LIMIT', 0, many)
    local answer = {'ok'}
    for i = 1, #found, 2 do
        answer[#answer + 1] = found[i]
        answer[#answer + 1] = found[i + 1]
        answer[#answer + 1] = call('HGET', P .. 'rows', found[i]) or ''
    end
    return answer
end

-- Runs without a row, newest first: {'ok', run, place, …}
function ask.rowless()
    local made, rows = call('ZCARD', P .. 'made'), call('HLEN', P .. 'rows')
    local answer = {'ok'}
    if made == rows + call('ZCARD', P .. 'bare') then
        local found = call('ZREVRANGE', P .. 'bare', 0, -1, 'WITHSCORES')
        for i = 1, #found do
            answer[i + 1] = found[i]
        end
        return answer
    end
    local all = call('ZREVRANGE', P .. 'made', 0, -1, 'WITHSCORES')
    for i = 1, #all, 2 do
        if call('HEXISTS', P .. 'rows', all[i]) == 0 then
            answer[#answer + 1] = all[i]
            answer[#answer + 1] = all[i + 1]
        end
    end
    return answer
end

function ask.tally()
    return {'ok', call('HGETALL', P .. 'tally')}
end

-- The position of exactly this record; 0: it is not there.
function ask.position()
    local run, seq, seal = arg(), num(), arg()
    local record = call('LINDEX', P .. 'j:' .. run, seq - 1)
    return {'ok', record and string.sub(record, 9, 40) == seal and number_at(record, 1) or 0}
end

return ask[arg()]()
