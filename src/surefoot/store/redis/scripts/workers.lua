-- Shared by the scripts that ask who is alive. Times are the server's, in microseconds since 1970.

local function clock()
    local now = call('TIME')
    return now[1] * 1000000 + now[2]
end

-- Whoever's lease ends after this is alive. Nobody could renew while the server was down, or while another one took over:
-- until this one has been up for the length of a lease, those count as alive that were when it went down, as the newest
-- of them says.
local function living_after(now, lease)
    local id = string.match(call('INFO', 'server'), 'run_id:(%x+)') or ''
    local seen = call('HMGET', META, 'server', 'up')
    local up = tonumber(seen[2] or 0)
    if seen[1] ~= id then
        up = now
        call('HSET', META, 'server', id, 'up', digits(now))
    end
    if now >= up + lease then
        return now
    end
    local newest = call('ZREVRANGEBYSCORE', P .. 'workers', '(' .. digits(up + lease), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
    return newest[2] and math.min(now, tonumber(newest[2]) - lease) or now
end
