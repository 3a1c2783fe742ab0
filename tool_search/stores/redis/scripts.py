"""Lua scripts of the store; each runs on the server as one atomic step.

Redis refuses a script with these headers before its first write if the server is read-only,
out of memory or cannot save, so that a script writes everything or nothing. Times are the
server's: workers' clocks may differ. Revisions are texts, because Lua's numbers have 53 bits.
Source: Redis documentation, "Scripting with Lua", "Script flags".
"""

from __future__ import annotations

from hashlib import sha1

__all__ = [
    "ADD_GRANTS",
    "APPEND",
    "CLEAR_EVIDENCE",
    "ERASE_GRANTS",
    "EVIDENCE_REVISION",
    "FORGET",
    "GRANT_REVISION",
    "LOAD_EVIDENCE",
    "LOAD_GRANTS",
    "LOAD_MODE",
    "LOAD_SALT",
    "LOAD_VERSION",
    "LOCK",
    "MARK_VERSION",
    "OLD_GRANTS",
    "PAGE",
    "READ",
    "READ_EVIDENCE",
    "REVISION",
    "SALT",
    "SAVE",
    "SAVE_MODE",
    "SET_ASIDE",
    "STAGE",
    "TRY_WRITE",
    "UNLOCK",
    "USED",
    "WRITE_EVIDENCE",
    "Script",
]


class Script:
    """A script and the digest that the server knows it by.

    Attributes:
        source: The Lua text.
        digest: The digest of the text.
        is_reading: True if it changes nothing.
        is_adding: True if it stores something, and not only erases or locks.
    """

    def __init__(self, body: str, *, flags: str = "") -> None:
        header = f"#!lua flags={flags}" if flags else "#!lua"
        self.is_reading = flags == _READS
        self.is_adding = not flags
        self.source = f"{header}\n{body.strip()}\n"
        # Redis names scripts by SHA-1; nothing is protected by it.
        self.digest = sha1(self.source.encode(), usedforsecurity=False).hexdigest()


_READS = "no-writes"
# Erasing and locking take next to no memory, and must work on a full server.
_SMALL = "allow-oom"

_NOW = """
local function now_us()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end
"""
# KEYS: the five keys of a conversation.
_CONVERSATION = (
    _NOW
    + """
local head, messages, found, mode, aside = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local function newer(version)
    local stored = redis.call('HGET', head, 'version')
    return stored and tonumber(stored) > tonumber(version) and tonumber(stored)
end
local function touch(version, name, keep_ms)
    local now, keep = math.floor(now_us() / 1000), tonumber(keep_ms)
    redis.call('HSET', head, 'version', version, 'key', name, 'at', string.format('%.0f', now))
    local ends = string.format('%.0f', now + keep)
    for _, key in ipairs({head, messages, found, mode, aside}) do
        if keep > 0 then redis.call('PEXPIREAT', key, ends) else redis.call('PERSIST', key) end
    end
end
local function add_found(first, last, refresh)
    for i = first, last, 3 do
        local name, via, tool = ARGV[i], ARGV[i + 1], ARGV[i + 2]
        local old = redis.call('HGET', found, name)
        if not old then
            local place = redis.call('HLEN', found)
            redis.call('HSET', found, name, place .. ' ' .. via .. ' ' .. tool)
        elseif refresh then
            local place, via_before = string.match(old, '^(%d+) (%S+) ')
            redis.call('HSET', found, name, place .. ' ' .. via_before .. ' ' .. tool)
        end
    end
end
"""
)

# Returns the version of the stored form; nil: nothing is stored yet.
LOAD_VERSION = Script("return redis.call('GET', KEYS[1])", flags=_READS)

# ARGV: version. Returns the version of the stored form; sets it if there is none.
MARK_VERSION = Script(
    "redis.call('SETNX', KEYS[1], ARGV[1])\nreturn redis.call('GET', KEYS[1])", flags=_SMALL
)

# A write that changes nothing: the key does not exist. Redis refuses it as it refuses others.
# A save asks for the time too, which a user may lack the right for.
TRY_WRITE = Script("redis.call('TIME')\nreturn redis.call('DEL', KEYS[1])", flags=_SMALL)

# ARGV: version, name, keep_ms, then name, way and tool of each discovery.
# Returns all discoveries, or the newer version.
APPEND = Script(
    _CONVERSATION
    + """
local ahead = newer(ARGV[1])
if ahead then return ahead end
add_found(4, #ARGV, false)
touch(ARGV[1], ARGV[2], ARGV[3])
return redis.call('HVALS', found)
"""
)

# ARGV: version, name, keep_ms, expected revision ('*': any, '-': none), new revision, revision
# that the first messages are kept of ('-': none are), their number, record, number of
# discoveries, the discoveries, number of staged messages, the other messages. The sixth key is
# the list of staged messages.
# Returns {'saved'}, {'differs'}, {'whole'} (the first messages are needed too), {'newer', n},
# {'unstaged'} (the staged messages are not there).
SAVE = Script(
    _CONVERSATION
    + """
local ahead = newer(ARGV[1])
if ahead then return {'newer', ahead} end
local current = redis.call('HGET', head, 'revision') or '-'
-- The answer to an earlier try was lost.
if current == ARGV[5] then return {'saved'} end
if ARGV[4] ~= '*' and ARGV[4] ~= current then return {'differs'} end
local kept = tonumber(ARGV[7])
if ARGV[6] ~= '-' and (ARGV[6] ~= current or redis.call('LLEN', messages) < kept) then
    return {'whole'}
end
local staged = 10 + 3 * tonumber(ARGV[9])
local count = tonumber(ARGV[staged])
if count > 0 and redis.call('LLEN', KEYS[6]) ~= count then return {'unstaged'} end
add_found(10, staged - 1, true)
if kept == 0 then redis.call('DEL', messages) else redis.call('LTRIM', messages, 0, kept - 1) end
for i = 0, count - 1, 1000 do
    redis.call('RPUSH', messages, unpack(redis.call('LRANGE', KEYS[6], i, i + 999)))
end
if count > 0 then redis.call('DEL', KEYS[6]) end
for i = staged + 1, #ARGV, 1000 do
    redis.call('RPUSH', messages, unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
redis.call('HSET', head, 'record', ARGV[8], 'revision', ARGV[5])
touch(ARGV[1], ARGV[2], ARGV[3])
return {'saved'}
"""
)

# Returns {the written key, milliseconds since 1970 of the last use}; early heads have no time.
USED = Script("return redis.call('HMGET', KEYS[1], 'key', 'at')", flags=_READS)

# ARGV: number of messages that are staged already, the next ones. Returns the number now.
STAGE = Script(
    """
-- The answer to an earlier try may have been lost.
if redis.call('LLEN', KEYS[1]) == tonumber(ARGV[1]) then
    redis.call('RPUSH', KEYS[1], unpack(ARGV, 2))
end
redis.call('PEXPIRE', KEYS[1], 600000)
return redis.call('LLEN', KEYS[1])
"""
)

REVISION = Script("return redis.call('HGET', KEYS[1], 'revision')", flags=_READS)

# Any change of the conversation changes this text: a save its revision, a discovery their number.
_STATE = """
local head, messages, found, mode, aside = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local function state()
    return table.concat({
        redis.call('HGET', head, 'revision') or '-', redis.call('HGET', head, 'at') or '-',
        redis.call('LLEN', messages), redis.call('HLEN', found), redis.call('HLEN', aside),
        redis.call('GET', mode) or '-',
    }, ' ')
end
"""

# ARGV: 'all', or '' without what was set aside. Returns {state, written key, version, revision,
# record, number of messages, discoveries, mode, what was set aside}.
READ = Script(
    _STATE
    + """
local kept = redis.call('HMGET', head, 'key', 'version', 'revision', 'record')
return {
    state(), kept[1], kept[2], kept[3], kept[4], redis.call('LLEN', messages),
    redis.call('HVALS', found), redis.call('GET', mode),
    ARGV[1] == 'all' and redis.call('HGETALL', aside) or {},
}
""",
    flags=_READS,
)

# ARGV: state, first message, bytes. Returns messages of about so many bytes; nil: it has changed.
PAGE = Script(
    _STATE
    + """
if state() ~= ARGV[1] then return false end
local start, most, taken, size = tonumber(ARGV[2]), tonumber(ARGV[3]), {}, 0
while size < most do
    local some = redis.call('LRANGE', messages, start + #taken, start + #taken + 15)
    if #some == 0 then break end
    for _, message in ipairs(some) do
        taken[#taken + 1] = message
        size = size + #message
        if size >= most then break end
    end
end
return taken
""",
    flags=_READS,
)

# ARGV: state, or '' for any. Returns the number of conversations that were erased; -1: it has
# another state.
FORGET = Script(
    _STATE
    + """
if ARGV[1] ~= '' and state() ~= ARGV[1] then return -1 end
return math.min(1, redis.call('UNLINK', unpack(KEYS)))
""",
    flags=_SMALL,
)

# ARGV: version, name, keep_ms.
SET_ASIDE = Script(
    _CONVERSATION
    + """
local stored = redis.call('HMGET', head, 'record', 'version')
local number = redis.call('HINCRBY', aside, 'count', 1)
local function keep(part, value)
    if value then redis.call('HSET', aside, number .. '.' .. part, value) end
end
keep('record', stored[1])
keep('version', stored[2])
for place, message in ipairs(redis.call('LRANGE', messages, 0, -1)) do
    keep('message.' .. place, message)
end
for place, entry in ipairs(redis.call('HVALS', found)) do keep('found.' .. place, entry) end
redis.call('UNLINK', head, messages, found)
touch(ARGV[1], ARGV[2], ARGV[3])
return number
"""
)

LOAD_MODE = Script("return redis.call('GET', KEYS[1])", flags=_READS)

# ARGV: version, name, keep_ms, mode.
SAVE_MODE = Script(
    _CONVERSATION
    + """
local ahead = newer(ARGV[1])
if ahead then return ahead end
redis.call('SET', mode, ARGV[4])
touch(ARGV[1], ARGV[2], ARGV[3])
return 0
"""
)

# ARGV: holder, lease_ms. Returns 1 if the holder has the lock now.
LOCK = Script(
    """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
""",
    flags=_SMALL,
)

UNLOCK = Script(
    """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
""",
    flags=_SMALL,
)

# A revision is never used again, even if the server lost its last seconds: it is at least the
# time.
_COUNTED = (
    _NOW
    + """
local entries, second, meta = KEYS[1], KEYS[2], KEYS[3]
local function revision() return redis.call('HGET', meta, 'revision') or '0' end
local function changed()
    local before = tonumber(revision())
    -- Another program may have written anything there, NaN too.
    if not before or not (before >= 0 and before < 2^53) then before = 0 end
    local number = math.max(before + 1, now_us())
    redis.call('HSET', meta, 'revision', string.format('%.0f', number))
end
"""
)

GRANT_REVISION = Script("return redis.call('HGET', KEYS[3], 'revision') or '0'", flags=_READS)
EVIDENCE_REVISION = GRANT_REVISION

LOAD_GRANTS = Script(
    """
return {redis.call('HGET', KEYS[3], 'revision') or '0', redis.call('HGETALL', KEYS[1])}
""",
    flags=_READS,
)
LOAD_EVIDENCE = LOAD_GRANTS

# ARGV: milliseconds. Returns {revision, the grants that are at least as old}.
OLD_GRANTS = Script(
    _NOW
    + """
local old, flat = {}, redis.call('HGETALL', KEYS[1])
local before = math.floor(now_us() / 1000) - tonumber(ARGV[1])
for i = 1, #flat, 2 do
    local at = tonumber(string.match(flat[i + 1], '^%d+ (%d+)$'))
    if at and at <= before then old[#old + 1] = flat[i] end
end
return {redis.call('HGET', KEYS[3], 'revision') or '0', old}
""",
    flags=_READS,
)

# ARGV: the name of this try, 'source' or '', the source, the grants.
# Returns 1 if they are there by this try.
ADD_GRANTS = Script(
    _COUNTED
    + """
if ARGV[2] ~= '' then
    redis.call('HSETNX', second, ARGV[3], ARGV[1])
    if redis.call('HGET', second, ARGV[3]) ~= ARGV[1] then return 0 end
end
local has_changed = false
for i = 4, #ARGV do
    if redis.call('HEXISTS', entries, ARGV[i]) == 0 then
        local place = redis.call('HINCRBY', meta, 'place', 1)
        local at = string.format('%.0f', math.floor(now_us() / 1000))
        redis.call('HSET', entries, ARGV[i], place .. ' ' .. at)
        has_changed = true
    end
end
if has_changed then changed() end
return 1
"""
)

# ARGV: the revision that the grants were read at, the grants. Returns 0 if it differs.
ERASE_GRANTS = Script(
    _COUNTED
    + """
if revision() ~= ARGV[1] then return 0 end
for i = 2, #ARGV do redis.call('HDEL', entries, ARGV[i]) end
changed()
return 1
""",
    flags=_SMALL,
)

# ARGV: the time before which others count, the tools. Returns {revision, number of entries,
# the last time before that, each tool's entries}.
READ_EVIDENCE = Script(
    """
local old = redis.call('ZREVRANGEBYSCORE', KEYS[2], ARGV[1], '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
local known = {}
for i = 2, #ARGV do known[#known + 1] = redis.call('HGET', KEYS[1], ARGV[i]) or '[]' end
return {
    redis.call('HGET', KEYS[3], 'revision') or '0', redis.call('ZCARD', KEYS[2]), old[2] or '',
    known,
}
""",
    flags=_READS,
)

# ARGV: the revision that was read, number of tools, each tool and its entries ('': none),
# number of entries that go, those, then each new entry and its time.
# Returns 0 if the revision differs.
WRITE_EVIDENCE = Script(
    _COUNTED
    + """
if revision() ~= ARGV[1] then return 0 end
local place = 3
for _ = 1, tonumber(ARGV[2]) do
    if ARGV[place + 1] == '' then
        redis.call('HDEL', entries, ARGV[place])
    else
        redis.call('HSET', entries, ARGV[place], ARGV[place + 1])
    end
    place = place + 2
end
local last = place + tonumber(ARGV[place])
for i = place + 1, last do redis.call('ZREM', second, ARGV[i]) end
for i = last + 1, #ARGV, 2 do redis.call('ZADD', second, ARGV[i + 1], ARGV[i]) end
changed()
return 1
"""
)

# ARGV: random bytes. Returns the salt.
SALT = Script(
    """
redis.call('HSETNX', KEYS[3], 'salt', ARGV[1])
return redis.call('HGET', KEYS[3], 'salt')
"""
)

LOAD_SALT = Script("return redis.call('HGET', KEYS[3], 'salt')", flags=_READS)

# ARGV: the revision that was read.
CLEAR_EVIDENCE = Script(
    _COUNTED
    + """
if revision() ~= ARGV[1] then return 0 end
if redis.call('UNLINK', entries, second) > 0 then changed() end
return 1
""",
    flags=_SMALL,
)
