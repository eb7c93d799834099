-- How many bits about untrusted values a session has been told in clear. It
-- outlives a restart, or restarting would give a new budget.
CREATE TABLE dualview_told (
	owner   TEXT NOT NULL,
	session TEXT NOT NULL,
	bits    REAL NOT NULL CHECK (bits >= 0),
	at      INTEGER NOT NULL,
	PRIMARY KEY (owner, session)
) STRICT, WITHOUT ROWID;
