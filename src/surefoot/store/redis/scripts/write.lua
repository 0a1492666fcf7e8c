-- Shared by the scripts that write journals.

local SAID = {} -- kinds of entries that an audit lists
for kind in string.gmatch('$SAID', '%d+') do
    SAID[tonumber(kind)] = true
end

local function lists_of(row)
    local ok, found = pcall(cjson.decode, string.match(row or '', '^[^\n]*') or '')
    return ok and type(found) == 'table' and found or nil
end

local function leave(key, run, all, name)
    call('ZREM', key, run)
    if call('EXISTS', key) == 0 then
        call('SREM', all, name)
    end
end

-- A row names: lane, queue, wake, worker, tally, and the lists that the run is in.
local function unlist(run, row)
    call('ZREM', P .. 'held:' .. row[2], run)
    if row[3] ~= '' then
        leave(P .. 'wake:' .. row[1], run, P .. 'lanes', row[1])
    end
    if row[4] ~= '' then
        leave(P .. 'claims:' .. row[4], run, P .. 'claimants', row[4])
        call('HDEL', P .. 'busy:' .. row[2], run)
    end
    if call('HINCRBY', P .. 'tally', row[5], -1) <= 0 then
        call('HDEL', P .. 'tally', row[5])
    end
    for i = 6, #row do
        call('ZREM', P .. 'in:' .. row[i], run)
    end
end

local function enlist(run, row, n)
    if row[3] ~= '' then
        call('ZADD', P .. 'wake:' .. row[1], row[3], run)
        call('SADD', P .. 'lanes', row[1])
    end
    if row[4] ~= '' then
        call('ZADD', P .. 'claims:' .. row[4], n, run)
        call('SADD', P .. 'claimants', row[4])
        call('HSET', P .. 'busy:' .. row[2], run, row[4])
    end
    call('HINCRBY', P .. 'tally', row[5], 1)
    for i = 6, #row do
        call('ZADD', P .. 'in:' .. row[i], n, run)
    end
end

-- Writes an index row. Whoever writes a row ends the reservation of the run. Returns whether the run may be taken up now.
local function index(run, lists, row, n)
    local before = call('HGET', P .. 'rows', run)
    local old, new = lists_of(before), cjson.decode(lists)
    call('HSET', P .. 'rows', run, lists .. '\n' .. row)
    call('ZREM', P .. 'bare', run)
    if before and string.match(before, '^[^\n]*') == lists then
        call('ZREM', P .. 'held:' .. new[2], run)
    else
        if old then
            unlist(run, old)
        end
        enlist(run, new, n)
    end
    if new[3] == '' then
        return false
    end
    local now = call('TIME')
    return tonumber(new[3]) <= now[1] * 1000000 + now[2]
end

-- Adds the records ARGV[from], … of a run behind its position `seq`. Returns the last position in the store, and the
-- place of the run in the list.
local function put(run, seq, head, pos, from, count)
    local n = head and number_at(head, 41)
    if not n then
        n = pos + 1
        call('HSET', P .. 'order', digits(n), run)
        call('ZADD', P .. 'names', 0, run)
        if string.sub(run, 1, 1) ~= '\31' then
            call('ZADD', P .. 'made', n, run)
            call('ZADD', P .. 'bare', n, run)
        end
    end
    if count == 0 then
        return pos, n
    end
    local journal, place = P .. 'j:' .. run, eight(n)
    for i = from, from + count - 1 do
        local record, key, offset = ARGV[i], on_trail(pos + 1)
        pos, seq = pos + 1, seq + 1
        call('RPUSH', journal, eight(pos) .. record)
        call('SETRANGE', key, offset, string.sub(record, 1, 8) .. place .. eight(seq))
        if SAID[string.byte(record, 57) * 256 + string.byte(record, 58)] then
            call('ZADD', P .. 'said', pos, digits(pos))
        end
    end
    local seal = string.sub(ARGV[from + count - 1], 1, 32)
    if call('HSET', HEADS, run, eight(seq) .. seal .. place) == 1 then
        call('HINCRBY', META, 'runs', 1)
    end
    return pos, n
end

-- The parts from here on: those that are missing or differ are written. That heals every value that has them.
local function keep_parts()
    for _ = 1, num() do
        local id, part = arg(), arg()
        if call('HGET', P .. 'parts', id) ~= part then
            call('HSET', P .. 'parts', id, part)
        end
    end
end

local function announce(woken)
    if woken then
        call('PUBLISH', P .. 'ready', '')
    end
end
