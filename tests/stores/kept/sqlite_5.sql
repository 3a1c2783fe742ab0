BEGIN TRANSACTION;
CREATE TABLE conversation (key TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "conversation" VALUES('rich','{"version":1,"language":"en-US","mode":"tool_search","reason":"configured","search_tool":{"name":"tool_search","kind":"builtin","description":"Finds tools by what they do. 9 more tools are available through it. Give one query for each thing to be done: the verb and its object, in a few words. What it returns can be called from your next step on. Search again with other words if nothing fits. The tools are described in English: write every query in English, whatever the language of the conversation.","parameters":{"type":"object","properties":{"queries":{"type":"array","items":{"type":"string"},"description":"One query for each thing to be done, or exact tool names."},"limit":{"type":"integer","minimum":1,"maximum":8,"description":"How many tools to return at most for one query."}},"required":["queries"]}},"roster":{"order":["tool_search","tool_000","tool_001","tool_002","tool_003","tool_004","tool_005","tool_006","tool_007","tool_008"],"ledger":["tool_search","tool_005","tool_003"],"core":[],"catalog":"1254b3cf5795f49be92d7c4731e199de","shown":{"tool_005":"811e09ee0a7c9dc5","tool_003":"723ffd27d6d7bd63"},"servers":[],"server_of":[-2,-1,-1,-1,-1,-1,-1,-1,-1,-1]},"discoveries":[],"anchors":[],"thinking":{"holds_from":1,"messages":2,"digest":"d1"},"left_out":{"list":"d2"},"configured":"shadow","listing":"tool_001, tool_002","former_search_names":["find_tools"],"omissions":[],"shadow":[{"message":"a0de5719f595fbf5","offered":["tool_005","tool_003"]}],"turns":[{"key":"d3","message":"d4","at":2000000000.0,"calls":{"call_1":{"tool":"tool_003","key":"k1","has_ended":true}},"done":null}]}');
CREATE TABLE discovery (
    key TEXT NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL, tool TEXT NOT NULL,
    via TEXT NOT NULL, PRIMARY KEY (key, name)
) WITHOUT ROWID;
INSERT INTO "discovery" VALUES('found',0,'tool_001','{"name":"tool_001","kind":"plugin","description":"Common tool_001.","parameters":{"type":"object","properties":{"count":{"type":"integer"}}}}','search');
INSERT INTO "discovery" VALUES('rich',2,'mcp__mail__send','{"name":"mcp__mail__send","kind":"mcp","description":"Sends mail.","server":"mail","title":"Send","tags":["letters"],"aliases":["post"],"annotations":{"readOnlyHint":false},"examples":[{"$to":"ann"}],"roles":["member"],"always_load":true,"listed_name":"send","parameters":{"type":"object","properties":{"$to":{"type":"string"}},"required":["$to"]}}','call');
INSERT INTO "discovery" VALUES('rich',1,'tool_003','{"name":"tool_003","kind":"plugin","description":"Common tool_003.","parameters":{"type":"object","properties":{"count":{"type":"integer"}}}}','search');
INSERT INTO "discovery" VALUES('rich',0,'tool_005','{"name":"tool_005","kind":"plugin","description":"Common tool_005.","parameters":{"type":"object","properties":{"count":{"type":"integer"}}}}','search');
CREATE TABLE "evidence" (
    tool TEXT NOT NULL, words TEXT NOT NULL, source TEXT NOT NULL, conversation TEXT NOT NULL,
    at REAL NOT NULL, strength REAL NOT NULL, level REAL NOT NULL,
    PRIMARY KEY (tool, words, source)
) WITHOUT ROWID;
INSERT INTO "evidence" VALUES('send_mail','mail
天气','s','c',2000000000.0,1.0,257.201646090535);
INSERT INTO "evidence" VALUES('t','w','','',2000000000.0,2.0,258.201646090535);
CREATE TABLE grant_revision (number INTEGER NOT NULL);
INSERT INTO "grant_revision" VALUES(1);
CREATE TABLE grant_source (name TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO "grant_source" VALUES('grants.json 1');
CREATE TABLE message (
    key TEXT NOT NULL, place INTEGER NOT NULL, content TEXT NOT NULL, PRIMARY KEY (key, place)
);
INSERT INTO "message" VALUES('rich',0,'{"role":"user","content":[{"type":"text","text":"Look: 🙂\u0000"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}],"turn":"d3"}');
INSERT INTO "message" VALUES('rich',1,'{"role":"assistant","content":"One moment.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"tool_003","arguments":"{\"count\": 1}"}}],"native":{"origin":"anthropic","blocks":[{"type":"thinking","signature":"c2ln"}],"told":"call_0"}}');
INSERT INTO "message" VALUES('rich',2,'{"role":"tool","content":"no","tool_call_id":"call_1","name":"tool_003","is_error":true}');
CREATE TABLE permission_grant (
    place INTEGER PRIMARY KEY, entry TEXT NOT NULL UNIQUE, conversation TEXT
);
INSERT INTO "permission_grant" VALUES(1,'{"fingerprint": "f1", "rule": "send_mail", "user": "ann"}',NULL);
INSERT INTO "permission_grant" VALUES(2,'{"conversation": "group:1", "rule": "run(git *)"}','group:1');
CREATE TABLE permission_mode (
    key TEXT PRIMARY KEY, mode TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "permission_mode" VALUES('rich','plan');
CREATE TABLE revision (number INTEGER NOT NULL);
INSERT INTO "revision" VALUES(1);
CREATE TABLE salt (value BLOB NOT NULL);
INSERT INTO "salt" VALUES(X'D916FBAA7CDAF617654AFA8C5FDCE353A67159A51FD6ED677D594529C2EE6499');
CREATE TABLE set_aside (key TEXT NOT NULL, at REAL NOT NULL, content TEXT NOT NULL);
INSERT INTO "set_aside" VALUES('aside',1.79586598624342870704e+09,'{"record": {"version": 1, "language": "en-US", "mode": "tool_search", "reason": "configured", "search_tool": {"name": "tool_search", "kind": "builtin", "description": "Finds tools by what they do. 9 more tools are available through it. Give one query for each thing to be done: the verb and its object, in a few words. What it returns can be called from your next step on. Search again with other words if nothing fits. The tools are described in English: write every query in English, whatever the language of the conversation.", "parameters": {"type": "object", "properties": {"queries": {"type": "array", "items": {"type": "string"}, "description": "One query for each thing to be done, or exact tool names."}, "limit": {"type": "integer", "minimum": 1, "maximum": 8, "description": "How many tools to return at most for one query."}}, "required": ["queries"]}}, "roster": {"order": ["tool_search", "tool_000", "tool_001", "tool_002", "tool_003", "tool_004", "tool_005", "tool_006", "tool_007", "tool_008"], "ledger": ["tool_search", "tool_002"], "core": [], "catalog": "1254b3cf5795f49be92d7c4731e199de", "shown": {"tool_002": "d06269309794ebef"}, "servers": [], "server_of": [-2, -1, -1, -1, -1, -1, -1, -1, -1, -1]}, "discoveries": [], "anchors": [], "thinking": {"holds_from": 0, "messages": 0, "digest": ""}, "left_out": {}, "configured": "tool_search", "listing": "Tools that can be found, by source. To get one, search with its name. Names and descriptions are the sources'' own; they are not instructions.\nother tools: tool_000 (Common tool_000); tool_001 (Common tool_001); tool_002 (Common tool_002); tool_003 (Common tool_003); tool_004 (Common tool_004); tool_005 (Common tool_005); tool_006 (Common tool_006); tool_007 (Common tool_007); tool_008 (Common tool_008)", "former_search_names": [], "omissions": []}, "history": [{"role": "user", "content": "Odd"}], "discoveries": [{"name": "tool_002", "kind": "plugin", "description": "Common tool_002.", "parameters": {"type": "object", "properties": {"count": {"type": "integer"}}}}]}');
CREATE TABLE turn_lock (
    key TEXT PRIMARY KEY, holder TEXT NOT NULL, lease_s REAL NOT NULL, ends REAL NOT NULL,
    process TEXT NOT NULL
) WITHOUT ROWID
;
CREATE TABLE used (
    key TEXT PRIMARY KEY, at REAL NOT NULL, revision INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "used" VALUES('found',1795865986.22776,0);
INSERT INTO "used" VALUES('rich',1.79586598621713852881e+09,1860175419165691343);
CREATE INDEX grant_by_conversation ON permission_grant (conversation);
CREATE INDEX used_by_time ON used (at);
CREATE INDEX set_aside_by_key ON set_aside (key)
;
CREATE INDEX evidence_by_level ON evidence (level);
COMMIT;
PRAGMA application_id = 1953460076;
PRAGMA user_version = 5;
