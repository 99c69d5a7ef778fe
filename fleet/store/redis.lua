-- SPDX-License-Identifier: BSD-2-Clause
-- The only code that touches weir's data in Redis: every operation happens in here.
--
-- KEYS[1]  {name}:store, a hash:
--          version      of the last commit
--          run          the server's run that wrote it
--          incarnation  random, drawn when the store began; requests for another one are refused
--          since        the time of that, in microseconds
--          kept         1 as long as no data that this run acknowledges can be lost
-- {name}:s:INCARNATION:ID  a session: exists as long as it is alive
-- {name}:b:INCARNATION:ID  the set of the keys that the session has bound, for when it is ended
-- {name}:folders   the set of the FIRST of all rows
-- {name}:d:FIRST   a hash of the rows whose keys begin with FIRST/: "version made session value"
-- {name}:w:FIRST   a channel: "version KEY KEY..." of each change of these rows. On {name}:w: any
--                  message says that any row may have changed
--
-- ARGV: 1 the server's run, 2 the incarnation that the client knows, or "", 3 the highest version
-- that it has seen, 4 whether it found the server durable, 5 random digits for a new incarnation,
-- 6 the operation, and its arguments. Answers begin with a status: "ok", "again", "stale", or
-- "other": this is another store than the client knows, and nothing was done.
--
-- A new incarnation begins where the server's data cannot be shown to contain all that was
-- acknowledged: there is none; or another run of the server wrote it, and this run is not a restart
-- of one that kept everything; or it is behind what the client has seen. It ends all sessions. Its
-- versions begin above all earlier ones: above what the client has seen, and not below the clock's
-- microseconds. So versions stay below 2^53 for two more centuries.

local base = KEYS[1]:sub(1, -6)
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local seen = tonumber(ARGV[3])

local state = call('HMGET', KEYS[1], 'version', 'run', 'incarnation', 'since', 'kept')
local version = tonumber(state[1] or 0)
local incarnation = state[3]
local since = tonumber(state[4] or 0)

-- A server that had a replica within the last hour still has a replication backlog.
local replication = call('INFO', 'replication')
local function says(text)
	return replication:find(text .. '\r\n', 1, true) ~= nil
end
local keeps = ARGV[4] == '1' and says('connected_slaves:0') and says('repl_backlog_active:0')
local none = ('0'):rep(40)

local function number(value)
	return string.format('%.0f', value)
end

local function is_restart()
	return incarnation and state[5] == '1' and keeps and says('master_replid2:' .. none)
end

-- A client that may not publish writes all the same, and watches are not told.
local function publish(name, text)
	redis.pcall('PUBLISH', base .. 'w:' .. name, text)
end

if version < seen or (state[2] ~= ARGV[1] and not is_restart()) then
	version = math.max(version + 1, now, seen + 1)
	incarnation = ARGV[5]
	since = now
	call('HSET', KEYS[1], 'version', number(version), 'run', ARGV[1], 'incarnation', incarnation,
		'since', number(since), 'kept', keeps and '1' or '0')
	publish('', 'any')
elseif state[2] ~= ARGV[1] then
	version = math.max(version + 1, now)
	call('HSET', KEYS[1], 'version', number(version), 'run', ARGV[1])
elseif state[5] == '1' and not keeps then
	call('HSET', KEYS[1], 'kept', '0')
end

if ARGV[6] == 'hello' then
	return {'ok', incarnation, number(version)}
elseif ARGV[2] ~= incarnation then
	return {'other', incarnation, number(version)}
end

local function first(key)
	return key:match('^[^/]*')
end

local function folder(key)
	return base .. 'd:' .. first(key)
end

local function session_key(session)
	return base .. 's:' .. incarnation .. ':' .. session
end

local function bound_key(session)
	return base .. 'b:' .. incarnation .. ':' .. session
end

local living = {}
local function lives(session)
	if session == '0' then
		return true
	end
	if living[session] == nil then
		living[session] = call('EXISTS', session_key(session)) == 1
	end
	return living[session]
end

-- Returns version, made, session, and where the value begins; nil if there is no such row.
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
	return call('SET', session_key(session), ttl, 'PX', ttl, 'NX') and {'ok'} or {'again'}
end

local function keep(session)
	local ttl = call('GET', session_key(session))
	if not ttl then
		return {'stale'}
	end
	call('PEXPIRE', session_key(session), ttl)
	call('PEXPIRE', bound_key(session), ttl)
	return {'ok', ttl}
end

-- Lists of the keys that have changed, by FIRST.
local changed = {}
local function note(key)
	local name = first(key)
	changed[name] = (changed[name] or '') .. ' ' .. key
end

local function report(at)
	for name, keys in pairs(changed) do
		publish(name, number(at) .. keys)
	end
end

local function holds(key, kind, wanted)
	local written, made = parse(call('HGET', folder(key), key))
	if kind == 'absent' then
		return not written
	end
	return (kind == 'version' and written or made) == wanted
end

-- ARGV: session, number of checks, key kind version of each, then key kind value of each write.
local function commit(session)
	local checks, at = tonumber(ARGV[8]), 9
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
	local text = number(version)
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
		if kind == 'bind' then
			call('SADD', bound_key(session), key)
			call('PEXPIRE', bound_key(session), call('GET', session_key(session)))
		end
		note(key)
	end
	call('HSET', KEYS[1], 'version', text)
	report(version)
	return {'ok', text}
end

-- Rows of ended sessions are deleted on the way.
local function gather(rows, prefix)
	local hash = folder(prefix)
	local all = call('HGETALL', hash)
	for i = 1, #all, 2 do
		local key = all[i]
		local written, made, _, at = parse(all[i + 1])
		if not written then
			call('HDEL', hash, key)
			note(key)
		elseif key:sub(1, #prefix) == prefix then
			rows[#rows + 1] = {key, written, made, all[i + 1]:sub(at)}
		end
	end
end

-- One row, without going through the others of its hash.
local function gather_one(rows, key)
	local row = call('HGET', folder(key), key)
	local written, made, _, at = parse(row)
	if written then
		rows[#rows + 1] = {key, written, made, row:sub(at)}
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

-- Delete a row if it is still bound to that session.
local function unbind(session, key)
	local hash = folder(key)
	local row = call('HGET', hash, key)
	if row and row:match('^%d+ %d+ (%x+) ') == session then
		call('HDEL', hash, key)
		note(key)
		if call('EXISTS', hash) == 0 then
			call('SREM', base .. 'folders', first(key))
		end
	end
end

-- The rows of the session are deleted at once, so that those that watch them are told. That is no
-- commit: it counts as part of the next one, which no client has read yet. Earlier programs have not
-- noted which rows they are.
local function finish(session)
	local keys = call('SMEMBERS', bound_key(session))
	call('DEL', session_key(session), bound_key(session))
	for _, key in ipairs(keys) do
		unbind(session, key)
	end
	if #keys == 0 then
		gather_all({})
	end
	report(version + 1)
	return {'ok'}
end

local function read()
	local rows = {}
	for i = 7, #ARGV do
		if ARGV[i] == '' then
			gather_all(rows)
		elseif ARGV[i]:sub(-1) == '=' then
			gather_one(rows, ARGV[i]:sub(1, -2))
		else
			gather(rows, ARGV[i])
		end
	end
	report(version + 1)
	return {'ok', number(version), number(math.max(now - since, 0)), rows}
end

local verb = ARGV[6]
if verb == 'begin' then
	return begin(ARGV[7], ARGV[8])
elseif verb == 'keep' then
	return keep(ARGV[7])
elseif verb == 'end' then
	return finish(ARGV[7])
elseif verb == 'commit' then
	return commit(ARGV[7])
end
return read()
