-- Format 4: the plugins' data for several hosts.

-- The write that made a value. Null: a commit, or a host of an earlier format.
ALTER TABLE plugin_values ADD COLUMN write uuid;

-- The usage of each namespace. A trigger keeps it exact.
CREATE TABLE plugin_usage (
    namespace bytea PRIMARY KEY,
    bytes bigint NOT NULL,
    keys bigint NOT NULL
);

-- A key is the namespace and the bucket, each after its length in two bytes, and the name of the entry. The namespace and the two
-- lengths do not count.
CREATE FUNCTION count_value() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed bytea := coalesce(NEW.key, OLD.key);
    named integer := get_byte(changed, 0) * 256 + get_byte(changed, 1);
    own integer := octet_length(changed) - named - 4;
    more_bytes bigint := coalesce(own + octet_length(NEW.value), 0) - coalesce(own + octet_length(OLD.value), 0);
    more_keys bigint := (NEW.key IS NOT NULL)::integer - (OLD.key IS NOT NULL)::integer;
BEGIN
    IF more_bytes <> 0 OR more_keys <> 0 THEN
        INSERT INTO toolgate.plugin_usage AS present (namespace, bytes, keys)
        VALUES (substr(changed, 3, named), more_bytes, more_keys)
        ON CONFLICT (namespace) DO UPDATE
        SET bytes = present.bytes + excluded.bytes, keys = present.keys + excluded.keys;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER count_values AFTER INSERT OR DELETE OR UPDATE OF value ON plugin_values
    FOR EACH ROW EXECUTE FUNCTION count_value();
INSERT INTO plugin_usage (namespace, bytes, keys)
    SELECT substr(key, 3, named), sum(octet_length(key) - named - 4 + octet_length(value)), count(*)
    FROM (SELECT key, value, get_byte(key, 0) * 256 + get_byte(key, 1) AS named FROM plugin_values) AS entries GROUP BY 1;

-- The number of writes outside of commits, of all hosts.
CREATE TABLE value_writes (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    writes bigint NOT NULL
);
INSERT INTO value_writes (writes) VALUES (0);
DROP TABLE host_values;
DROP SEQUENCE terms;

-- Each read and each write outside of commits names the term of its host. After a crash of the server, and on another server, the
-- table is empty. `base` is the number of writes when the first host came back after that.
CREATE UNLOGGED TABLE value_terms (
    host text COLLATE "C" PRIMARY KEY REFERENCES hosts (name) ON DELETE CASCADE,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    term uuid NOT NULL,
    base bigint NOT NULL
);
