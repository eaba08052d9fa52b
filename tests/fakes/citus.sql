-- What Factbook uses of Citus, on a plain PostgreSQL: it records the layout, keeps what Citus would
-- have copied apart, and refuses what the documentation of Citus says that it refuses.

CREATE SCHEMA shards;
CREATE TABLE pg_dist_node (nodename text, isactive boolean, shouldhaveshards boolean);
CREATE TABLE pg_dist_partition (
    logicalrelid regclass PRIMARY KEY, partmethod "char", partkey text, repmodel "char"
);
CREATE TABLE citus_calls (number serial, call text);

CREATE FUNCTION fake_lay_out(laid_out regclass, method "char", key text, model "char")
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found record;
BEGIN
    EXECUTE format('LOCK TABLE %s IN EXCLUSIVE MODE', laid_out);
    IF EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = laid_out) THEN
        RAISE EXCEPTION 'table % is already distributed', laid_out;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM pg_dist_node WHERE isactive AND shouldhaveshards) THEN
        RAISE EXCEPTION 'couldn''t find any worker nodes';
    END IF;
    IF EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = laid_out AND NOT tgisinternal) THEN
        RAISE EXCEPTION 'cannot distribute relation % because it has triggers', laid_out;
    END IF;
    FOR found IN SELECT i.indexrelid::regclass AS index, array(
        SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = i.indexrelid
    ) AS columns FROM pg_index i WHERE i.indrelid = laid_out AND i.indisunique LOOP
        IF key IS NOT NULL AND NOT key = ANY (found.columns) THEN
            RAISE EXCEPTION 'cannot create constraint %: unique ones need %', found.index, key;
        END IF;
    END LOOP;
    FOR found IN SELECT confrelid AS referenced FROM pg_constraint
    WHERE conrelid = laid_out AND contype = 'f' LOOP
        IF NOT EXISTS (
            SELECT 1 FROM pg_dist_partition
            WHERE logicalrelid = found.referenced::regclass AND repmodel = 't'
        ) THEN
            RAISE EXCEPTION 'referenced table % must be a reference table', found.referenced::regclass;
        END IF;
    END LOOP;
    EXECUTE format('CREATE TABLE shards.%I AS TABLE %s',
        (SELECT relname FROM pg_class WHERE oid = laid_out), laid_out);
    INSERT INTO pg_dist_partition VALUES (laid_out, method, key, model);
    INSERT INTO citus_calls (call) VALUES (format('%s %s', laid_out, coalesce(key, 'everywhere')));
END $$;

CREATE FUNCTION create_reference_table(laid_out regclass) RETURNS void LANGUAGE sql AS $$
    SELECT fake_lay_out(laid_out, 'n', NULL, 't');
$$;

CREATE FUNCTION create_distributed_table(
    laid_out regclass, key text, colocate_with text DEFAULT 'default'
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF colocate_with <> 'default' AND NOT EXISTS (
        SELECT 1 FROM pg_dist_partition
        WHERE logicalrelid = colocate_with::regclass AND partmethod = 'h'
    ) THEN
        RAISE EXCEPTION 'relation % is not distributed', colocate_with;
    END IF;
    PERFORM fake_lay_out(laid_out, 'h', key, 's');
END $$;

CREATE FUNCTION truncate_local_data_after_distributing_table(emptied regclass)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = emptied) THEN
        RAISE EXCEPTION 'supplied parameter is not a distributed relation';
    END IF;
    IF EXISTS (
        SELECT 1 FROM pg_constraint k WHERE k.confrelid = emptied AND k.contype = 'f'
            AND NOT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = k.conrelid)
    ) THEN
        RAISE EXCEPTION 'cannot truncate a table referenced in a foreign key by a local table';
    END IF;
    EXECUTE format('TRUNCATE %s CASCADE', emptied);
    INSERT INTO citus_calls (call) VALUES (format('%s emptied', emptied));
END $$;
