-- Those who sign in to the pages. The reference is the one that tokens name as their owner.
CREATE TABLE people (
    ref SORTED_TEXT PRIMARY KEY,
    display_name TEXT NOT NULL,
    role TEXT NOT NULL,             -- administrator or viewer
    password TEXT,                  -- Argon2id in PHC form; none: cannot sign in with one
    issuer SORTED_TEXT,             -- of OpenID Connect, and who the person is there
    subject SORTED_TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    signed_in_at INTEGER,
    disabled_at INTEGER,
    CHECK ((issuer IS NULL) = (subject IS NULL))
);
CREATE UNIQUE INDEX people_by_subject ON people (issuer, subject);

CREATE TABLE sessions (
    hash SORTED_TEXT PRIMARY KEY,   -- keyed, of the cookie's value
    person SORTED_TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    address TEXT NOT NULL,
    agent TEXT NOT NULL
);
CREATE INDEX sessions_by_person ON sessions (person);

-- Links that work once: to become a person, or to set the password of one anew.
CREATE TABLE invitations (
    hash SORTED_TEXT PRIMARY KEY,   -- keyed, of the link's secret
    ref SORTED_TEXT,                -- whose password is set; none: who comes chooses a name
    role TEXT NOT NULL,
    made_by TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL
);

-- The tokens that end or shrink with their owner.
CREATE INDEX tokens_by_owner ON tokens (owner);
