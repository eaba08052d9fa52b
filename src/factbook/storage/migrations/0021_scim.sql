-- People and groups that an identity provider pushes (scim/store.py).
CREATE TABLE scim_resources (
    id SORTED_TEXT PRIMARY KEY,
    type SORTED_TEXT NOT NULL,         -- User or Group
    name_key SORTED_TEXT NOT NULL,     -- userName of a user, displayName of a group, without case
    display_key SORTED_TEXT NOT NULL,  -- displayName without case; empty: none
    external_id SORTED_TEXT NOT NULL,  -- empty: none
    active INTEGER NOT NULL,
    document TEXT NOT NULL,            -- JSON: attributes, without members and what the service adds
    ref SORTED_TEXT NOT NULL,          -- of its entity; empty: it is not in the catalog
    problem TEXT NOT NULL,             -- about its name; empty: none
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    disabled_ref SORTED_TEXT NOT NULL, -- the account that its deactivation disabled; empty: none
    disabled_at INTEGER NOT NULL,
    is_troubled INTEGER NOT NULL       -- 1: it has a problem
) WITHOUT ROWID;
CREATE INDEX scim_resources_by_name ON scim_resources (type, name_key);
CREATE INDEX scim_resources_by_display ON scim_resources (type, display_key);
CREATE INDEX scim_resources_by_external_id ON scim_resources (type, external_id);
CREATE INDEX scim_resources_by_creation ON scim_resources (type, created_at, id);
CREATE INDEX scim_resources_by_ref ON scim_resources (ref);
CREATE INDEX scim_resources_by_problem ON scim_resources (id) WHERE is_troubled = 1;

CREATE TABLE scim_members (
    group_id SORTED_TEXT NOT NULL,
    member_id SORTED_TEXT NOT NULL,
    PRIMARY KEY (group_id, member_id)
) WITHOUT ROWID;
CREATE INDEX scim_members_by_member ON scim_members (member_id, group_id);

-- What the OpenID Connect provider calls an account, in full; none: not known yet (auth/users.py).
ALTER TABLE people ADD COLUMN login TEXT;
