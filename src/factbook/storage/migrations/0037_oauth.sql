-- What people let clients do, by OAuth: each is a family of tokens, which ends as a whole.
CREATE TABLE oauth_consents (
    id SORTED_TEXT PRIMARY KEY,
    person SORTED_TEXT NOT NULL,
    client SORTED_TEXT NOT NULL,      -- its id, an address where its metadata has one
    client_name TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    audience TEXT NOT NULL,           -- the resource that its tokens are for
    permissions TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    ends_at INTEGER NOT NULL          -- with the newest of its tokens
);
CREATE INDEX oauth_consents_person ON oauth_consents (person, created_at);
CREATE INDEX oauth_consents_ends_at ON oauth_consents (ends_at);

-- Authorization codes, access tokens and refresh tokens, by their keyed hashes.
CREATE TABLE oauth_tokens (
    hash SORTED_TEXT PRIMARY KEY,
    consent SORTED_TEXT NOT NULL,
    kind TEXT NOT NULL,               -- 'code', 'access', 'refresh'
    challenge TEXT NOT NULL,          -- of a code: what its verifier has to hash to
    permissions TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER                   -- when a code or refresh token was exchanged
);
CREATE INDEX oauth_tokens_consent ON oauth_tokens (consent);
CREATE INDEX oauth_tokens_expires_at ON oauth_tokens (expires_at);

-- Clients that registered themselves, where a setting lets them.
CREATE TABLE oauth_clients (
    id SORTED_TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER                   -- when somebody last let it do something
);
