-- Shared by all scripts. A script that fails half-way is not undone: so each judges everything first, then writes.
-- KEYS[1] is the key `meta`. All keys begin as it does, with one hash tag: they are in one slot.

local P = string.sub(KEYS[1], 1, -5)
local META, HEADS, TRAIL = KEYS[1], P .. 'heads', P .. 'trail:'
local call = redis.call
local at = 0

local function arg()
    at = at + 1
    return ARGV[at]
end

local function num()
    return tonumber(arg())
end

local function digits(number)
    return string.format('%.0f', number)
end

local function eight(number)
    return struct.pack('>I8', number)
end

local function number_at(text, from)
    return (struct.unpack('>I8', text, from))
end

-- The trail has 24 bytes for each position: the first eight of the seal, the place of the run, the position in the run.
local function on_trail(pos)
    return TRAIL .. digits(math.floor((pos - 1) / 65536)), (pos - 1) % 65536 * 24
end

-- Positions that a person gave up: the last one of that range; nil: none.
local function given_up(pos)
    for _, range in ipairs(call('LRANGE', P .. 'adopted', 0, -1)) do
        if number_at(range, 1) <= pos and pos <= number_at(range, 9) then
            return number_at(range, 9)
        end
    end
end

local function known(pos, seal)
    local key, offset = on_trail(pos)
    return call('GETRANGE', key, offset, offset + 7) == seal or given_up(pos) ~= nil
end

-- Whether this is the store that the caller knows, with all that the caller knows of it; else what is missing.
local function missing()
    local store, pos, seal = arg(), num(), arg()
    if store == '' then
        return nil -- an older state is being adopted
    end
    local meta = call('HMGET', META, 'store', 'runs', 'pos')
    if meta[1] ~= store then
        return {'lost', meta[1] and 'replaced' or 'vanished', 0}
    end
    if call('HLEN', HEADS) ~= tonumber(meta[2]) then
        return {'lost', 'heads', call('HLEN', HEADS), meta[2]}
    end
    if pos > 0 and not known(pos, seal) then
        return {'lost', 'mark', tonumber(meta[3])}
    end
end

local function length(head)
    return head and number_at(head, 1) or 0
end
