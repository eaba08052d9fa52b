-- Erasures of personal data that have begun (auth/erasures.py). A row is deleted at the end: nothing
-- leads from a pseudonym to the person.
CREATE TABLE erasures (
    pseudonym SORTED_TEXT PRIMARY KEY,  -- a name such as erased-1f3a9c0d
    person SORTED_TEXT NOT NULL,        -- reference of the person
    identifiers TEXT NOT NULL,          -- JSON: other texts that identify the person
    entities TEXT NOT NULL,             -- JSON: ids of the person's entity
    begun_at INTEGER NOT NULL,
    is_open INTEGER NOT NULL            -- 1 only within a transaction that replaces
);

-- A record of the audit is changed in one way: an erasure that is open in the same transaction puts
-- its pseudonym in the place of a person, and removes the address.

-- On sqlite:
DROP TRIGGER audit_is_not_changed;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    WHEN NOT EXISTS (
        SELECT 1 FROM erasures e WHERE e.is_open = 1
        AND NEW.at = OLD.at AND NEW.id = OLD.id AND NEW.action = OLD.action
        AND NEW.outcome = OLD.outcome AND NEW.status = OLD.status
        AND NEW.token = OLD.token AND NEW.granted = OLD.granted
        AND NEW.address IN (OLD.address, '')
        AND NEW.actor IN (OLD.actor, 'user:default/' || e.pseudonym)
        AND (NEW.object = OLD.object OR instr(NEW.object, e.pseudonym) > 0)
        AND (NEW.detail = OLD.detail OR instr(NEW.detail, e.pseudonym) > 0)
        AND (NEW.actor <> OLD.actor OR NEW.object <> OLD.object OR NEW.detail <> OLD.detail)
    )
    BEGIN
        SELECT RAISE(ABORT, 'A record of the audit is never changed, but to erase a person.');
    END;

-- On postgresql:
CREATE OR REPLACE FUNCTION audit_is_not_changed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'UPDATE' AND EXISTS (SELECT 1 FROM erasures WHERE is_open = 1) THEN
            RETURN NULL;
        END IF;
        RAISE EXCEPTION 'A record of the audit is never changed, but to erase a person.';
    END $$;
CREATE FUNCTION audit_is_only_erased() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (
            SELECT 1 FROM after_it n LEFT JOIN before_it o ON o.at = n.at AND o.id = n.id
            WHERE NOT EXISTS (
                SELECT 1 FROM erasures e WHERE e.is_open = 1
                AND n.action = o.action AND n.outcome = o.outcome AND n.status = o.status
                AND n.token = o.token AND n.granted = o.granted
                AND n.address IN (o.address, '')
                AND n.actor IN (o.actor, 'user:default/' || e.pseudonym)
                AND (n.object = o.object OR strpos(n.object, e.pseudonym) > 0)
                AND (n.detail = o.detail OR strpos(n.detail, e.pseudonym) > 0)
                AND (n.actor <> o.actor OR n.object <> o.object OR n.detail <> o.detail)
            )
        ) THEN
            RAISE EXCEPTION 'A record of the audit is never changed, but to erase a person.';
        END IF;
        RETURN NULL;
    END $$;
CREATE TRIGGER audit_is_only_erased AFTER UPDATE ON audit
    REFERENCING OLD TABLE AS before_it NEW TABLE AS after_it
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_only_erased();
DO $$
    DECLARE part regclass;
    BEGIN
        FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('audit') LOOP
            EXECUTE 'CREATE TRIGGER audit_is_only_erased AFTER UPDATE ON ' || part
                || ' REFERENCING OLD TABLE AS before_it NEW TABLE AS after_it'
                || ' FOR EACH STATEMENT EXECUTE FUNCTION audit_is_only_erased()';
        END LOOP;
    END $$;
