-- Times are nanoseconds since 1970. A question waits while its answer is empty
-- and expires lies ahead; it has expired once that has passed, whether or not
-- the answer says so yet.
CREATE TABLE approval_questions (
	id          TEXT    PRIMARY KEY NOT NULL,
	binding     TEXT    NOT NULL,          -- digest of the exact payload and sink
	agent       TEXT    NOT NULL,
	created     INTEGER NOT NULL,
	expires     INTEGER NOT NULL,
	hard        INTEGER NOT NULL CHECK (hard IN (0, 1)),
	answer      TEXT    NOT NULL DEFAULT '' CHECK (answer IN ('', 'approved', 'denied', 'expired')),
	answered    INTEGER NOT NULL DEFAULT 0,
	answered_by TEXT    NOT NULL DEFAULT '',
	redeemable  INTEGER NOT NULL DEFAULT 0, -- an approved question's tickets are good until then
	redeemed    INTEGER NOT NULL DEFAULT 0, -- and one of them, once
	body        BLOB                        -- the question as JSON: payload, deleted after a while
) STRICT;

CREATE INDEX approval_by_binding ON approval_questions (binding, created);
CREATE INDEX approval_waiting ON approval_questions (created) WHERE answer = '';

-- Asking the same again yields the same question and another ticket.
CREATE TABLE approval_tickets (
	digest   TEXT    PRIMARY KEY NOT NULL,  -- of the ticket, which itself is not stored
	question TEXT    NOT NULL REFERENCES approval_questions (id) ON DELETE CASCADE,
	created  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX approval_tickets_by_question ON approval_tickets (question, created);

-- A grant lets flows of one scope pass without a question.
CREATE TABLE approval_grants (
	id       TEXT    PRIMARY KEY NOT NULL,
	question TEXT    NOT NULL,              -- the one that it was given with
	scope    TEXT    NOT NULL,              -- digest of agent, tool, sink and command
	session  TEXT    NOT NULL,              -- only in this session; empty means in any
	created  INTEGER NOT NULL,
	expires  INTEGER NOT NULL,
	uses     INTEGER NOT NULL CHECK (uses >= 0), -- left
	used     INTEGER NOT NULL DEFAULT 0,
	revoked  INTEGER NOT NULL DEFAULT 0,
	body     BLOB    NOT NULL               -- the scope in words, and who gave it
) STRICT;

CREATE INDEX approval_grants_by_scope ON approval_grants (scope);
