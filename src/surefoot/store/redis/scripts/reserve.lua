-- Runs that a worker may take up, as `contract.Work.reserve` says. {'ok', when the next one is ready by itself or 0, run, …}
local lost = missing()
if lost then
    return lost
end

local function set()
    local found, many = {}, num()
    for _ = 1, many do
        found[arg()] = true
    end
    return found, many
end

local worker, many, hold, lease, ready_before = arg(), num(), num(), num(), arg()
local now = clock()
local due_by = ready_before == '' and now or math.min(now, tonumber(ready_before) - 1)
local workflows = set()
local queues, queue_count = set()
local driven = set()
local only, only_count = set()
local floor = living_after(now, lease)

local function serves(workflow, queue)
    return workflows[workflow] and (queue_count == 0 or queues[queue])
end

local function is_held(run, queue)
    local ends = call('ZSCORE', P .. 'held:' .. queue, run)
    return ends and tonumber(ends) > now
end

local lives = {}
local function is_alive(name)
    if lives[name] == nil then
        local ends = call('ZSCORE', P .. 'workers', name)
        lives[name] = ends and tonumber(ends) > floor or false
    end
    return lives[name]
end

local function is_driven(run, name)
    if name == worker then
        return driven[run] or false
    end
    return is_alive(name)
end

-- What each queue with limits admits now.
local rooms = {}
for _ = 1, num() do
    local queue, concurrency, starts, window = arg(), arg(), arg(), num()
    local busy, taken = 0, {}
    for _, run in ipairs(call('ZRANGEBYSCORE', P .. 'held:' .. queue, '(' .. digits(now), '+inf')) do
        busy, taken[run] = busy + 1, true
    end
    local claims = call('HGETALL', P .. 'busy:' .. queue)
    for i = 1, #claims, 2 do
        if not taken[claims[i]] and is_driven(claims[i], claims[i + 1]) then
            busy = busy + 1
        end
    end
    call('ZREMRANGEBYSCORE', P .. 'starts:' .. queue, '-inf', digits(now - window))
    local started = call('ZRANGE', P .. 'starts:' .. queue, 0, 0, 'WITHSCORES')
    local by_number = concurrency == '' and math.huge or tonumber(concurrency) - busy
    local by_rate = starts == '' and math.huge or tonumber(starts) - call('ZCARD', P .. 'starts:' .. queue)
    local room = {free = math.min(by_number, by_rate), counts = starts ~= ''}
    if by_rate <= by_number then
        room.opens = tonumber(started[2] or now) + window
    end
    rooms[queue] = room
end

local ready, seen, next_wake = {}, {}, nil

local function sooner(time)
    if time and (not next_wake or time < next_wake) then
        next_wake = time
    end
end

local function offer(since, run, queue)
    if not seen[run] and not is_held(run, queue) then
        seen[run] = true
        ready[#ready + 1] = {since = since, run = run, queue = queue}
    end
end

-- Claims of workers that are dead, and those that this process gave up: they had their turn already, and come first.
for _, name in ipairs(call('SMEMBERS', P .. 'claimants')) do
    if name == worker or not is_alive(name) then
        for _, run in ipairs(call('ZRANGE', P .. 'claims:' .. name, 0, -1)) do
            if not is_driven(run, name) and (only_count == 0 or only[run]) then
                local row = lists_of(call('HGET', P .. 'rows', run))
                local lane = row and cjson.decode(row[1])
                if lane and serves(lane[1], lane[2]) then
                    offer(0, run, lane[2])
                end
            end
        end
    end
end

if only_count > 0 then
    for run in pairs(only) do
        local row = lists_of(call('HGET', P .. 'rows', run))
        local lane = row and row[3] ~= '' and cjson.decode(row[1])
        if lane and serves(lane[1], lane[2]) then
            if tonumber(row[3]) <= due_by then
                offer(tonumber(row[3]), run, lane[2])
            elseif tonumber(row[3]) > now then
                sooner(tonumber(row[3]))
            end
        end
    end
else
    for _, name in ipairs(call('SMEMBERS', P .. 'lanes')) do
        local lane = cjson.decode(name)
        if serves(lane[1], lane[2]) then
            local key, from, enough = P .. 'wake:' .. name, 0, #ready + many
            repeat
                local page = call('ZRANGEBYSCORE', key, '-inf', digits(due_by), 'WITHSCORES', 'LIMIT', from, many + 20)
                for i = 1, #page, 2 do
                    offer(tonumber(page[i + 1]), page[i], lane[2])
                end
                from = from + many + 20
            until #page < 2 * (many + 20) or #ready >= enough
            sooner(tonumber(call('ZRANGEBYSCORE', key, '(' .. digits(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]))
        end
    end
end

table.sort(ready, function(a, b)
    if a.since ~= b.since then
        return a.since < b.since
    end
    return a.run < b.run
end)
local answer, chosen = {'ok', 0}, 0
for _, one in ipairs(ready) do
    if chosen == many then
        break
    end
    local room = rooms[one.queue]
    if not room or room.free > 0 then
        chosen = chosen + 1
        answer[#answer + 1] = one.run
        call('ZADD', P .. 'held:' .. one.queue, digits(now + hold), one.run)
        if room then
            room.free = room.free - 1
            if room.counts then
                call('ZADD', P .. 'starts:' .. one.queue, digits(now), digits(now) .. ':' .. chosen .. ':' .. one.run)
            end
        end
    else
        sooner(room.opens)
    end
end
answer[2] = next_wake or 0
return answer
