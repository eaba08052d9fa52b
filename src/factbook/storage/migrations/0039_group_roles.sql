-- Roles by groups (auth/group_roles.py). `role` is the one that counts: the higher of the one that was
-- given and the one of the groups.
ALTER TABLE people ADD COLUMN given_role TEXT;      -- what was given; none: `role`, as no group gives more
ALTER TABLE people ADD COLUMN role_group TEXT;      -- the group that gives `role`; none: it was given
-- Of the groups that the OpenID Connect provider named at the last sign-in, those of the setting: JSON.
ALTER TABLE people ADD COLUMN claimed_groups TEXT;
