-- What both sides of a workspace held when they were last in step.

CREATE TABLE fileview_view (
	id    INTEGER PRIMARY KEY,
	owner TEXT NOT NULL,
	root  BLOB NOT NULL UNIQUE -- absolute path of the workspace; names need not be UTF-8
) STRICT;

CREATE TABLE fileview_entry (
	view     INTEGER NOT NULL REFERENCES fileview_view (id),
	path     BLOB NOT NULL,    -- in the workspace, slash-separated
	agent    BLOB NOT NULL,    -- the same in the agent's tree: names can be symbols
	kind     INTEGER NOT NULL, -- 1 file, 2 directory, 3 link
	mode     INTEGER NOT NULL,
	human    TEXT NOT NULL,    -- Git blob ids of both contents
	agentid  TEXT NOT NULL,
	hstat    TEXT NOT NULL,    -- what stat said of both, to see a change
	astat    TEXT NOT NULL,
	segments BLOB NOT NULL,    -- provenance of every byte
	PRIMARY KEY (view, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX fileview_entry_agent ON fileview_entry (view, agent);

-- The life of every HumanShell and of what it left running. An end of 0 means
-- that something of it lives.
CREATE TABLE fileview_window (
	id      INTEGER PRIMARY KEY,
	start   INTEGER NOT NULL, -- nanoseconds
	end     INTEGER NOT NULL,
	command TEXT NOT NULL,
	marker  TEXT NOT NULL     -- by which its processes are known
) STRICT;
CREATE INDEX fileview_window_open ON fileview_window (end) WHERE end = 0;

-- Contents that were trusted whole, by Git blob id.
CREATE TABLE fileview_trusted (
	blob TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE fileview_conflict (
	id     INTEGER PRIMARY KEY,
	view   INTEGER NOT NULL REFERENCES fileview_view (id),
	path   BLOB NOT NULL,
	time   INTEGER NOT NULL,
	reason TEXT NOT NULL,
	human  TEXT NOT NULL, -- Git blob ids of the two versions
	agent  TEXT NOT NULL
) STRICT;
