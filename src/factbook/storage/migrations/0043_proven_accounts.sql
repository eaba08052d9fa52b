-- The exemption rules of a scorecard that somebody with the permission to write scorecards published:
-- JSON with the version and the checks that they were published for (checks/versions/grade_slots.py).
ALTER TABLE scorecards ADD COLUMN ruling TEXT;

-- What proves that an account is the catalog's user of its name (auth/users.py); empty: nothing;
-- none: it is older than this migration.
ALTER TABLE people ADD COLUMN proof TEXT;
-- The account that an invitation creates; none: the invited person chooses a name.
ALTER TABLE invitations ADD COLUMN new_ref TEXT;
-- The SCIM user whose account that will be; none: nobody's.
ALTER TABLE invitations ADD COLUMN scim_id TEXT;

-- SCIM users whose accounts an administrator has confirmed (auth/provider_accounts.py).
CREATE TABLE account_links (
    scim_id SORTED_TEXT PRIMARY KEY,
    ref SORTED_TEXT NOT NULL,
    confirmed_by TEXT NOT NULL,
    confirmed_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX account_links_by_ref ON account_links (ref);
