-- A record of the audit is never changed. Records leave from the oldest end, none before the newest is
-- a day younger: what a slip or a bug could do. Who may change the schema can take these away.

-- On sqlite:
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    BEGIN
        SELECT RAISE(ABORT, 'A record of the audit is never changed.');
    END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
    WHEN OLD.at > (SELECT max(at) FROM audit) - 86400000
    OR EXISTS (SELECT 1 FROM audit WHERE (at, id) < (OLD.at, OLD.id))
    BEGIN
        SELECT RAISE(ABORT, 'Only the oldest records of the audit are forgotten, after a day.');
    END;

-- On postgresql:
CREATE FUNCTION audit_is_not_changed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'A record of the audit is never changed.';
    END $$;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_not_changed();
CREATE FUNCTION audit_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT 1 FROM gone) AND (
            (SELECT max(at) FROM gone)
                > coalesce((SELECT max(at) FROM audit), -9000000000000000) - 86400000
            OR EXISTS (
                SELECT 1 FROM audit
                WHERE (at, id) < (SELECT at, id FROM gone ORDER BY at DESC, id DESC LIMIT 1)
            )
        ) THEN
            RAISE EXCEPTION 'Only the oldest records of the audit are forgotten, after a day.';
        END IF;
        RETURN NULL;
    END $$;
CREATE TRIGGER audit_is_kept AFTER DELETE ON audit REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_kept();
