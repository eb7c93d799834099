-- Everything that a symbol stands for. A row is written once: symbols never
-- get a second value, so updates are refused by the database itself.

CREATE TABLE dualview_meta (
	name  TEXT PRIMARY KEY NOT NULL,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- One row for each distinct value. hash is keyed, so that the database does not
-- tell who reads it whether a guessed value is in it. data is NULL for a value
-- that lies in a file named after its hash. AUTOINCREMENT, because the content
-- index names rows by id and an id must never come to mean another value.
CREATE TABLE dualview_content (
	id   INTEGER PRIMARY KEY AUTOINCREMENT,
	hash BLOB NOT NULL UNIQUE,
	size INTEGER NOT NULL,
	data BLOB
) STRICT;

CREATE TABLE dualview_symbol (
	n          INTEGER PRIMARY KEY,
	id         BLOB NOT NULL UNIQUE CHECK (length(id) = 12),
	owner      TEXT NOT NULL CHECK (owner <> ''),
	content    INTEGER NOT NULL REFERENCES dualview_content (id),
	start      INTEGER NOT NULL CHECK (start >= 0),
	size       INTEGER NOT NULL CHECK (size >= 0),
	created    INTEGER NOT NULL,
	provenance BLOB NOT NULL,
	sinks      BLOB              -- not NULL: a secret, and where it may go
) STRICT;
CREATE INDEX dualview_symbol_content ON dualview_symbol (content, owner);
CREATE INDEX dualview_symbol_created ON dualview_symbol (created);

-- No ON DELETE for the parent: what a symbol was made from stays as long as
-- the symbol does.
CREATE TABLE dualview_parent (
	child  INTEGER NOT NULL REFERENCES dualview_symbol (n) ON DELETE CASCADE,
	parent INTEGER NOT NULL REFERENCES dualview_symbol (n),
	PRIMARY KEY (child, parent)
) STRICT, WITHOUT ROWID;
CREATE INDEX dualview_parent_parent ON dualview_parent (parent);

-- A view, or anything else that still shows a symbol, holds it.
CREATE TABLE dualview_hold (
	symbol INTEGER NOT NULL REFERENCES dualview_symbol (n),
	holder TEXT NOT NULL,
	PRIMARY KEY (symbol, holder)
) STRICT, WITHOUT ROWID;
CREATE INDEX dualview_hold_holder ON dualview_hold (holder);

CREATE TRIGGER dualview_symbol_immutable BEFORE UPDATE ON dualview_symbol
BEGIN SELECT RAISE(ABORT, 'a symbol is immutable'); END;
CREATE TRIGGER dualview_content_immutable BEFORE UPDATE ON dualview_content
BEGIN SELECT RAISE(ABORT, 'a value is immutable'); END;
