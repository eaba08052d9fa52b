-- What allowed a write: a role, a token or a group; empty for refusals, and for the service itself.
ALTER TABLE audit ADD COLUMN granted TEXT NOT NULL DEFAULT '';
