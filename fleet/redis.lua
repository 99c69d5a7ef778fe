-- What weir keeps in Redis, and the only one to touch it: everything happens in here.
--
-- KEYS[1]  {name}:store, a hash: version, of the last commit; run, the server's run that wrote it;
--          since, when that run was first seen, in microseconds
-- {name}:s:ID      a session: there as long as it lives
-- {name}:folders   a set of the FIRST of all rows
-- {name}:d:FIRST   a hash of the rows whose keys begin with that part: "version made session value"
--
-- ARGV: the server's run, what to do, and more. Answers begin with a status: "ok", "again",
-- "stale". A number of a version is below 2^53 for two centuries yet: it begins at the clock's
-- microseconds each time the server was started, so that it rises even where the server has
-- forgotten it.

local base = KEYS[1]:sub(1, -6)
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local state = call('HMGET', KEYS[1], 'version', 'run', 'since')
local version = tonumber(state[1] or 0)
local since = tonumber(state[3] or 0)
if state[2] ~= ARGV[1] then
	version = math.max(version + 1, now)
	since = now
	call('HSET', KEYS[1], 'version', string.format('%.0f', version), 'run', ARGV[1],
		'since', string.format('%.0f', since))
end

local function first(key)
	return key:match('^[^/]*')
end

local function folder(key)
	return base .. 'd:' .. first(key)
end

local living = {}
local function lives(session)
	if session == '0' then
		return true
	end
	if living[session] == nil then
		living[session] = call('EXISTS', base .. 's:' .. session) == 1
	end
	return living[session]
end

-- version, made, session, where the value begins; nothing if there is no such row
local function parse(row)
	if not row then
		return nil
	end
	local written, made, session, at = row:match('^(%d+) (%d+) (%x+) ()')
	if written and lives(session) then
		return written, made, session, at
	end
	return nil
end

local function begin(session, ttl)
	return call('SET', base .. 's:' .. session, ttl, 'PX', ttl, 'NX') and {'ok'} or {'again'}
end

local function keep(session)
	local ttl = call('GET', base .. 's:' .. session)
	if not ttl then
		return {'stale'}
	end
	call('PEXPIRE', base .. 's:' .. session, ttl)
	return {'ok', ttl}
end

local function finish(session)
	call('DEL', base .. 's:' .. session)
	return {'ok'}
end

local function holds(key, kind, wanted)
	local written, made = parse(call('HGET', folder(key), key))
	if kind == 'absent' then
		return not written
	end
	return (kind == 'version' and written or made) == wanted
end

-- session, number of checks, key kind version of each, then key kind value of each write
local function commit(session)
	local checks, at = tonumber(ARGV[4]), 5
	if not lives(session) then
		return {'stale'}
	end
	for _ = 1, checks do
		if not holds(ARGV[at], ARGV[at + 1], ARGV[at + 2]) then
			return {'again'}
		end
		at = at + 3
	end
	version = version + 1
	local text = string.format('%.0f', version)
	for i = at, #ARGV, 3 do
		local key, kind, hash = ARGV[i], ARGV[i + 1], folder(ARGV[i])
		local _, made = parse(call('HGET', hash, key))
		if kind == 'erase' then
			call('HDEL', hash, key)
		else
			call('HSET', hash, key, text .. ' ' .. (made or text) .. ' '
				.. (kind == 'bind' and session or '0') .. ' ' .. ARGV[i + 2])
			call('SADD', base .. 'folders', first(key))
		end
	end
	call('HSET', KEYS[1], 'version', text)
	return {'ok', text}
end

-- Rows of the dead are swept out on the way.
local function gather(rows, prefix)
	local hash = folder(prefix)
	local all = call('HGETALL', hash)
	for i = 1, #all, 2 do
		local key = all[i]
		local written, made, _, at = parse(all[i + 1])
		if not written then
			call('HDEL', hash, key)
		elseif key:sub(1, #prefix) == prefix then
			rows[#rows + 1] = {key, written, made, all[i + 1]:sub(at)}
		end
	end
end

local function gather_all(rows)
	for _, name in ipairs(call('SMEMBERS', base .. 'folders')) do
		gather(rows, name .. '/')
		if call('EXISTS', base .. 'd:' .. name) == 0 then
			call('SREM', base .. 'folders', name)
		end
	end
end

local function read()
	local rows = {}
	for i = 3, #ARGV do
		if ARGV[i] == '' then
			gather_all(rows)
		else
			gather(rows, ARGV[i])
		end
	end
	return {'ok', string.format('%.0f', version), string.format('%.0f', math.max(now - since, 0)),
		rows}
end

local verb = ARGV[2]
if verb == 'begin' then
	return begin(ARGV[3], ARGV[4])
elseif verb == 'keep' then
	return keep(ARGV[3])
elseif verb == 'end' then
	return finish(ARGV[3])
elseif verb == 'commit' then
	return commit(ARGV[3])
end
return read()
