-- What identifies a removed entity beyond its name (catalog/store/removed.py); none: nothing does.
ALTER TABLE removed_entities ADD COLUMN external_id TEXT;
