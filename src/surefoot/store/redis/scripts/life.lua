-- The signs of life of processes. {'ok', …}
local lost = missing()
if lost then
    return lost
end

local ask = {}

function ask.renew()
    local worker, length, sign, now = arg(), num(), arg(), clock()
    living_after(now, length)
    call('ZADD', P .. 'workers', digits(now + length), worker)
    call('HSET', P .. 'signs', worker, sign)
    call('HSETNX', P .. 'since', worker, digits(now))
    for _, gone in ipairs(call('ZRANGEBYSCORE', P .. 'workers', '-inf', digits(now - 86400000000), 'LIMIT', 0, 10)) do
        call('ZREM', P .. 'workers', gone)
        call('HDEL', P .. 'signs', gone)
        call('HDEL', P .. 'since', gone)
    end
    return {'ok', now}
end

function ask.leave()
    for i = at + 1, #ARGV do
        call('ZREM', P .. 'workers', ARGV[i])
        call('HDEL', P .. 'signs', ARGV[i])
        call('HDEL', P .. 'since', ARGV[i])
    end
    return {'ok'}
end

function ask.alive()
    local lease, ends = num(), call('ZSCORE', P .. 'workers', arg())
    return {'ok', ends and tonumber(ends) > living_after(clock(), lease) and 1 or 0}
end

-- {'ok', the end of its lease, when this server was first seen}; 0: unknown
function ask.lease()
    local ends = call('ZSCORE', P .. 'workers', arg())
    return {'ok', tonumber(ends or 0), tonumber(call('HGET', META, 'up') or 0), clock()}
end

-- {'ok', worker, end of its lease, sign, since, …}
function ask.all()
    local answer = {'ok'}
    local floor = living_after(clock(), num())
    local found = call('ZRANGEBYSCORE', P .. 'workers', '(' .. digits(floor), '+inf', 'WITHSCORES')
    for i = 1, #found, 2 do
        answer[#answer + 1] = found[i]
        answer[#answer + 1] = tonumber(found[i + 1])
        answer[#answer + 1] = call('HGET', P .. 'signs', found[i]) or ''
        answer[#answer + 1] = tonumber(call('HGET', P .. 'since', found[i]) or 0)
    end
    return answer
end

return ask[arg()]()
