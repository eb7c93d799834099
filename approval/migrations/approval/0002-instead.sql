-- An approval can be of another text than the one that was asked about.
ALTER TABLE approval_questions ADD COLUMN instead BLOB;
