-- Format 1. Every function is one statement for its caller: what it does arrives whole or not at all, no client holds a
-- lock while it thinks, and its plans are cached on the server, so that nothing depends on the session (poolers).

SELECT pg_advisory_xact_lock(hashtextextended('surefoot schema', 0));
DO $$ BEGIN
    IF to_regclass('surefoot.meta') IS NOT NULL THEN
        RAISE EXCEPTION 'another process was quicker' USING ERRCODE = 'SF002';
    END IF;
    IF to_regnamespace('surefoot') IS NULL THEN
        CREATE SCHEMA surefoot;
    END IF;
END $$;

CREATE TABLE surefoot.meta (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    format integer NOT NULL,
    store bytea NOT NULL,
    swept bigint NOT NULL DEFAULT 0,  -- how often parts were deleted: what was seen before may be gone since
    timeline text NOT NULL DEFAULT ''
);

CREATE TABLE surefoot.heads (
    run text COLLATE "C" PRIMARY KEY,
    n bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    seq bigint NOT NULL,
    seal bytea NOT NULL
) WITH (fillfactor = 70);

CREATE SEQUENCE surefoot.positions;

CREATE TABLE surefoot.entries (
    pos bigint NOT NULL DEFAULT nextval('surefoot.positions'),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),  -- transactions end in another order than they take positions
    run text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    epoch bigint NOT NULL,
    at bigint NOT NULL,
    kind integer NOT NULL,
    schema integer NOT NULL,
    codec integer NOT NULL,
    key integer NOT NULL,
    body bytea NOT NULL,
    seal bytea NOT NULL,
    PRIMARY KEY (run, seq),
    CONSTRAINT entries_pos UNIQUE (pos)
);
CREATE INDEX entries_by_xid ON surefoot.entries (xid);
-- What people did, and what fell back: an audit. An ordinary entry is not in it.
CREATE INDEX entries_said ON surefoot.entries (pos)
    WHERE kind IN (7, 11, 12, 13, 14, 15, 16, 18, 27, 33, 35, 46, 51, 53, 61);

CREATE TABLE surefoot.parts (
    id bytea PRIMARY KEY,
    n bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    kind integer NOT NULL,
    codec integer NOT NULL,
    size bigint NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE surefoot.parts ALTER body SET STORAGE EXTERNAL;  -- compressed already, or not worth it

CREATE TABLE surefoot.quarantine (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pos bigint, run text COLLATE "C", seq bigint, epoch bigint, at bigint, kind integer, schema integer, codec integer,
    key integer, body bytea, seal bytea
);
CREATE INDEX quarantine_by_run ON surefoot.quarantine (run, n);
CREATE INDEX quarantine_by_pos ON surefoot.quarantine (pos);

-- Positions that are gone for good, on purpose: an anchor that names one of them is no proof of loss.
CREATE TABLE surefoot.erased (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE "C" NOT NULL,
    positions int8multirange NOT NULL
);

CREATE TABLE surefoot.runs (
    run text COLLATE "C" PRIMARY KEY,
    workflow text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    labels text NOT NULL,
    created bigint NOT NULL,
    seq bigint NOT NULL,
    wake bigint,
    worker text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    need text COLLATE "C" NOT NULL,  -- what of it waits for a person, by kind
    address text NOT NULL,
    brief text NOT NULL,
    until bigint,
    since bigint,  -- from when on it has needed that
    marks text NOT NULL,
    labelled text[] NOT NULL,  -- a digest of each label: labels may hold what no other column can
    n bigint NOT NULL,  -- its place in the list, as in heads
    held bigint
) WITH (fillfactor = 70);
-- Lists for people: what waits for somebody, and the rest by what they ask for.
CREATE INDEX runs_by_n ON surefoot.runs (n);
CREATE INDEX runs_by_need ON surefoot.runs (need, n) WHERE need > '';
CREATE INDEX runs_in_need ON surefoot.runs (n) WHERE need > '';
CREATE INDEX runs_by_status ON surefoot.runs (status, n);
CREATE INDEX runs_by_workflow ON surefoot.runs (workflow, n);
CREATE INDEX runs_by_queue ON surefoot.runs (queue, n) WHERE queue > '';
CREATE INDEX runs_by_label ON surefoot.runs USING gin (labelled) WHERE labelled <> '{}';
-- Whoever looks for work meets only runs that could be it, and of each queue only the first few.
CREATE INDEX runs_by_wake ON surefoot.runs (workflow, queue, wake) WHERE wake IS NOT NULL;
CREATE INDEX runs_by_worker ON surefoot.runs (worker, queue) WHERE worker > '';
CREATE INDEX runs_by_held ON surefoot.runs (queue, held) WHERE held IS NOT NULL;

CREATE TABLE surefoot.workers (
    worker text COLLATE "C" PRIMARY KEY,
    host text NOT NULL,
    pid bigint NOT NULL,
    expires timestamptz NOT NULL,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    about text NOT NULL DEFAULT ''  -- what it says about itself: what it serves
) WITH (fillfactor = 50);

CREATE TABLE surefoot.starts (queue text COLLATE "C" NOT NULL, at bigint NOT NULL, run text COLLATE "C" NOT NULL);
CREATE INDEX starts_by_queue ON surefoot.starts (queue, at);

-- Our tables grow from nothing, and plans are kept: what was right for an empty table would be slow for years.
-- Hence the settings of the functions below.

CREATE FUNCTION surefoot.micros_1() RETURNS bigint LANGUAGE sql VOLATILE
    RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- One record of one run, as nearly always. Its position; 0: the head is another one.
CREATE FUNCTION surefoot.append_one_1(
    run_ text, old_seq bigint, old_seal bytea, seq_ bigint, epoch_ bigint, at_ bigint, kind_ bigint, schema_ bigint,
    codec_ bigint, key_ bigint, body_ bytea, seal_ bytea, floor_ bigint
) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    found_pos bigint;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF old_seq IS NULL THEN
        INSERT INTO surefoot.heads (run, seq, seal) VALUES (run_, seq_, seal_) ON CONFLICT DO NOTHING;
    ELSE
        UPDATE surefoot.heads SET seq = seq_, seal = seal_ WHERE run = run_ AND seq = old_seq AND seal = old_seal;
    END IF;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    INSERT INTO surefoot.entries (run, seq, epoch, at, kind, schema, codec, key, body, seal)
        VALUES (run_, seq_, epoch_, at_, kind_, schema_, codec_, key_, body_, seal_) RETURNING pos INTO found_pos;
    IF found_pos <= floor_ THEN
        RAISE EXCEPTION 'the next record would be number %', found_pos USING ERRCODE = 'SF001';
    END IF;
    RETURN found_pos;
END $$;

-- Parts that are not there, or not as they should be: that heals every value that has them. Given in the order of their
-- names, so that nobody waits in a circle; what is there and whole is only looked at.
CREATE FUNCTION surefoot.keep_1(p_id bytea[], p_kind bigint[], p_codec bigint[], p_size bigint[], p_body bytea[])
RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    INSERT INTO surefoot.parts (id, kind, codec, size, body)
        SELECT g.* FROM unnest(p_id, p_kind, p_codec, p_size, p_body) g (id, kind, codec, size, body)
        WHERE NOT EXISTS (
            SELECT FROM surefoot.parts p WHERE p.id = g.id AND p.kind = g.kind AND p.codec = g.codec
                AND p.size = g.size AND p.body = g.body
        )
        ON CONFLICT (id) DO UPDATE
            SET kind = excluded.kind, codec = excluded.codec, size = excluded.size, body = excluded.body
$$;

-- Many runs, with everything that belongs to them. `conflicts`: which of the runs were not as expected, by number;
-- `pos`: of the last record; `stale`: parts were deleted that the caller may rely on, and nothing was written.
CREATE FUNCTION surefoot.append_1(
    runs_ text[], old_seqs bigint[], old_seals bytea[], new_seqs bigint[], new_seals bytea[],
    e_item bigint[], e_seq bigint[], e_epoch bigint[], e_at bigint[], e_kind bigint[], e_schema bigint[],
    e_codec bigint[], e_key bigint[], e_body bytea[], e_seal bytea[],
    x_item bigint[], x_workflow text[], x_status text[], x_queue text[], x_labels text[], x_created bigint[],
    x_seq bigint[], x_wake bigint[], x_worker text[], x_reason text[], x_need text[],
    x_address text[], x_brief text[], x_until bigint[], x_since bigint[], x_marks text[], x_labelled text[],
    p_id bytea[], p_kind bigint[], p_codec bigint[], p_size bigint[], p_body bytea[],
    swept_ bigint, floor_ bigint,
    OUT conflicts bigint[], OUT pos_ bigint, OUT stale boolean
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    woken boolean;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    stale := false;
    conflicts := '{}';
    IF swept_ IS NOT NULL THEN
        LOCK TABLE surefoot.entries IN ROW EXCLUSIVE MODE;  -- from here on nobody deletes parts
        SELECT m.swept <> swept_ FROM surefoot.meta m INTO stale;
        IF stale THEN
            RETURN;
        END IF;
    END IF;
    WITH wish AS (
        SELECT * FROM unnest(runs_, old_seqs, old_seals, new_seqs, new_seals) WITH ORDINALITY
            AS w (run, old_seq, old_seal, seq, seal, i)
    ), made AS (
        INSERT INTO surefoot.heads (run, seq, seal) SELECT w.run, w.seq, w.seal FROM wish w WHERE w.old_seq IS NULL
            ON CONFLICT DO NOTHING RETURNING run
    ), moved AS (
        UPDATE surefoot.heads h SET seq = w.seq, seal = w.seal FROM wish w
            WHERE w.old_seq IS NOT NULL AND h.run = w.run AND h.seq = w.old_seq AND h.seal = w.old_seal RETURNING h.run
    )
    SELECT coalesce(array_agg(w.i), '{}') FROM wish w
        WHERE w.run NOT IN (SELECT run FROM made UNION ALL SELECT run FROM moved) INTO conflicts;
    IF cardinality(conflicts) = cardinality(runs_) THEN
        RETURN;
    END IF;
    IF cardinality(p_id) > 0 THEN
        PERFORM surefoot.keep_1(p_id, p_kind, p_codec, p_size, p_body);
    END IF;
    WITH written AS (
        INSERT INTO surefoot.entries (run, seq, epoch, at, kind, schema, codec, key, body, seal)
            SELECT runs_[e.item], e.seq, e.epoch, e.at, e.kind, e.schema, e.codec, e.key, e.body, e.seal
            FROM unnest(e_item, e_seq, e_epoch, e_at, e_kind, e_schema, e_codec, e_key, e_body, e_seal)
                AS e (item, seq, epoch, at, kind, schema, codec, key, body, seal)
            WHERE e.item <> ALL (conflicts)
            RETURNING pos
    )
    SELECT max(w.pos), bool_or(w.pos <= floor_) FROM written w INTO pos_, woken;
    IF woken THEN
        RAISE EXCEPTION 'the next record would be number %', pos_ USING ERRCODE = 'SF001';
    END IF;
    IF cardinality(x_item) > 0 THEN
        PERFORM surefoot.index_1(conflicts, runs_, x_item, x_workflow, x_status, x_queue, x_labels, x_created, x_seq,
            x_wake, x_worker, x_reason, x_need, x_address, x_brief, x_until, x_since, x_marks,
            x_labelled);
    END IF;
END $$;

-- Index rows of the runs that were as expected. Whoever writes a row ends its reservation.
CREATE FUNCTION surefoot.index_1(
    conflicts bigint[], runs_ text[], x_item bigint[], x_workflow text[], x_status text[], x_queue text[],
    x_labels text[], x_created bigint[], x_seq bigint[], x_wake bigint[], x_worker text[], x_reason text[], x_need text[],
    x_address text[], x_brief text[], x_until bigint[], x_since bigint[], x_marks text[], x_labelled text[]
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    earliest bigint;
BEGIN
    WITH written AS (
        INSERT INTO surefoot.runs (run, workflow, status, queue, labels, created, seq, wake, worker, reason, need,
                address, brief, until, since, marks, labelled, n, held)
            SELECT runs_[x.item], x.workflow, x.status, x.queue, x.labels, x.created, x.seq, x.wake, x.worker,
                x.reason, x.need, x.address, x.brief, x.until, x.since, x.marks, string_to_array(x.labelled, ' '),
                (SELECT h.n FROM surefoot.heads h WHERE h.run = runs_[x.item]), NULL
            FROM unnest(x_item, x_workflow, x_status, x_queue, x_labels, x_created, x_seq, x_wake, x_worker, x_reason,
                    x_need, x_address, x_brief, x_until, x_since, x_marks, x_labelled)
                AS x (item, workflow, status, queue, labels, created, seq, wake, worker, reason,
                    need, address, brief, until, since, marks, labelled)
            WHERE x.item <> ALL (conflicts)
            ON CONFLICT (run) DO UPDATE SET workflow = excluded.workflow, status = excluded.status,
                queue = excluded.queue, labels = excluded.labels, created = excluded.created, seq = excluded.seq,
                wake = excluded.wake, worker = excluded.worker, reason = excluded.reason, need = excluded.need,
                address = excluded.address, brief = excluded.brief, until = excluded.until,
                since = excluded.since, marks = excluded.marks,
                labelled = excluded.labelled, n = excluded.n, held = NULL
            RETURNING wake
    )
    SELECT min(w.wake) FROM written w INTO earliest;
    IF earliest <= surefoot.micros_1() THEN
        PERFORM pg_notify('surefoot_ready', '');
    END IF;
END $$;

CREATE FUNCTION surefoot.rewrite_1(
    run_ text, found_seq bigint, found_seal bytea, keep bigint, archive boolean, forget boolean,
    e_seq bigint[], e_epoch bigint[], e_at bigint[], e_kind bigint[], e_schema bigint[],
    e_codec bigint[], e_key bigint[], e_body bytea[], e_seal bytea[],
    x_item bigint[], x_workflow text[], x_status text[], x_queue text[], x_labels text[], x_created bigint[],
    x_seq bigint[], x_wake bigint[], x_worker text[], x_reason text[], x_need text[],
    x_address text[], x_brief text[], x_until bigint[], x_since bigint[], x_marks text[], x_labelled text[],
    p_id bytea[], p_kind bigint[], p_codec bigint[], p_size bigint[], p_body bytea[],
    swept_ bigint, floor_ bigint,
    OUT conflict boolean, OUT pos_ bigint, OUT stale boolean
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    last integer := cardinality(e_seq);
    first_pos bigint;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    stale := false;
    conflict := false;
    IF swept_ IS NOT NULL THEN
        LOCK TABLE surefoot.entries IN ROW EXCLUSIVE MODE;
        SELECT m.swept <> swept_ FROM surefoot.meta m INTO stale;
        IF stale THEN
            RETURN;
        END IF;
    END IF;
    IF found_seq IS NULL THEN
        INSERT INTO surefoot.heads (run, seq, seal) VALUES (run_, e_seq[last], e_seal[last]) ON CONFLICT DO NOTHING;
    ELSE
        UPDATE surefoot.heads SET seq = e_seq[last], seal = e_seal[last]
            WHERE run = run_ AND seq = found_seq AND seal = found_seal;
    END IF;
    IF NOT FOUND THEN
        conflict := true;
        RETURN;
    END IF;
    IF cardinality(p_id) > 0 THEN
        PERFORM surefoot.keep_1(p_id, p_kind, p_codec, p_size, p_body);
    END IF;
    IF forget THEN
        WITH lost AS (DELETE FROM surefoot.quarantine WHERE run = run_ RETURNING pos)
        INSERT INTO surefoot.erased (run, positions)
            SELECT run_, range_agg(int8range(l.pos, l.pos, '[]')) FROM lost l HAVING count(l.pos) > 0;
    END IF;
    IF archive THEN
        INSERT INTO surefoot.quarantine (pos, run, seq, epoch, at, kind, schema, codec, key, body, seal)
            SELECT e.pos, e.run, e.seq, e.epoch, e.at, e.kind, e.schema, e.codec, e.key, e.body, e.seal
            FROM surefoot.entries e WHERE e.run = run_ AND e.seq > keep ORDER BY e.seq;
        DELETE FROM surefoot.entries WHERE run = run_ AND seq > keep;
    ELSE
        WITH lost AS (DELETE FROM surefoot.entries WHERE run = run_ AND seq > keep RETURNING pos)
        INSERT INTO surefoot.erased (run, positions)
            SELECT run_, range_agg(int8range(l.pos, l.pos, '[]')) FROM lost l HAVING count(l.pos) > 0;
    END IF;
    WITH written AS (
        INSERT INTO surefoot.entries (run, seq, epoch, at, kind, schema, codec, key, body, seal)
            SELECT run_, e.* FROM unnest(e_seq, e_epoch, e_at, e_kind, e_schema, e_codec, e_key, e_body, e_seal) e
            RETURNING pos
    )
    SELECT min(w.pos), max(w.pos) FROM written w INTO first_pos, pos_;
    IF first_pos <= floor_ THEN
        RAISE EXCEPTION 'the next record would be number %', first_pos USING ERRCODE = 'SF001';
    END IF;
    IF archive THEN
        INSERT INTO surefoot.quarantine (pos, run, seq, epoch, at, kind, schema, codec, key, body, seal)
            VALUES (first_pos, run_, e_seq[1], e_epoch[1], e_at[1], e_kind[1], e_schema[1], e_codec[1], e_key[1],
                e_body[1], e_seal[1]);
    END IF;
    IF cardinality(x_item) > 0 THEN
        PERFORM surefoot.index_1('{}', ARRAY[run_], x_item, x_workflow, x_status, x_queue, x_labels, x_created, x_seq,
            x_wake, x_worker, x_reason, x_need, x_address, x_brief, x_until, x_since, x_marks,
            x_labelled);
    END IF;
END $$;

-- The highest position among what became visible after a moment (NULL: nothing did), and the moment this was true.
CREATE FUNCTION surefoot.news_1(since xid8, under_way xid8[], OUT newest bigint, OUT moment text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT (  -- not max(pos) over the table: that would walk all positions backwards
        SELECT max(n.pos) FROM (
            SELECT e.pos FROM surefoot.entries e WHERE e.xid >= since
            UNION ALL SELECT e.pos FROM surefoot.entries e WHERE e.xid = ANY (under_way) OFFSET 0
        ) n
    ), pg_current_snapshot()::text
$$;

-- Delete parts, unless there is an entry that was not there at that moment (the transactions from `since` on, and those
-- that were under way). Appends have to wait meanwhile, so we do not wait long for them to end, either.
CREATE FUNCTION surefoot.discard_1(ids bytea[], since xid8, under_way xid8[]) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    BEGIN
        LOCK TABLE surefoot.entries IN SHARE ROW EXCLUSIVE MODE;
    EXCEPTION WHEN lock_not_available THEN
        RETURN false;
    END;
    IF EXISTS (SELECT FROM surefoot.entries WHERE xid >= since)
        OR EXISTS (SELECT FROM surefoot.entries WHERE xid = ANY (under_way)) THEN
        RETURN false;
    END IF;
    DELETE FROM surefoot.parts WHERE id = ANY (ids);
    UPDATE surefoot.meta SET swept = swept + 1;
    RETURN true;
END $$;

-- An older state is accepted: far beyond every position that anybody may have seen, and those are erased.
CREATE FUNCTION surefoot.skip_1(expected bigint) RETURNS bigint LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO surefoot.erased (run, positions)
        SELECT '', int8multirange(int8range(coalesce(max(pos), 0) + 1, greatest(max(pos), expected, 0) + (1::bigint << 32)))
        FROM surefoot.entries;
    SELECT setval('surefoot.positions', (
        SELECT greatest(max(pos), expected, 0) + (1::bigint << 32) FROM surefoot.entries
    ))
$$;

-- Whose lease runs. Nobody could renew while the server was down: until it has been up for the length of a lease, those
-- count as alive that were when it went down, as the newest of their rows says.
CREATE FUNCTION surefoot.living_1(lease interval) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT w.worker FROM surefoot.workers w
    WHERE w.expires > clock_timestamp() OR (
        pg_postmaster_start_time() + lease > clock_timestamp() AND w.expires > (
            SELECT max(o.expires) FROM surefoot.workers o WHERE o.expires < pg_postmaster_start_time() + lease
        ) - lease
    )
$$;

-- The sign of life of a worker; the server's time, before and after. A crash may lose it: it comes again at once.
CREATE FUNCTION surefoot.renew_1(worker_ text, host_ text, pid_ bigint, lease interval, about_ text)
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO surefoot.workers AS w (worker, host, pid, expires, about)
        VALUES (worker_, host_, pid_, clock_timestamp() + lease, about_)
        ON CONFLICT (worker) DO UPDATE SET expires = excluded.expires, about = excluded.about;
    RETURN surefoot.micros_1();
END $$;

-- Up to `many` runs for a worker, and when the next one becomes ready by itself. A lane is a queue of one workflow.
CREATE FUNCTION surefoot.reserve_1(
    worker_ text, workflows text[], queues text[], driven text[], many bigint, seconds double precision, lease interval,
    l_queue text[], l_concurrency bigint[], l_starts bigint[], l_micros bigint[], only_ text[], ready_before bigint,
    OUT chosen text[], OUT next_wake bigint
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_ bigint := surefoot.micros_1();
    due_by bigint := least(now_, ready_before - 1);
    living text[] := ARRAY(SELECT surefoot.living_1(lease));
    free bigint[] := '{}';
    opens bigint[] := '{}';
    closed bigint;
    busy bigint;
    started bigint;
    oldest bigint;
    picks text[] := '{}';
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- a hint need not survive a crash
    chosen := '{}';
    -- What a queue lets in is counted by one at a time; in one order, so that nobody waits in a circle.
    PERFORM pg_advisory_xact_lock(hashtextextended('surefoot queue ' || q, 0))
        FROM (SELECT DISTINCT q FROM unnest(l_queue) q ORDER BY q) locked;
    FOR i IN 1 .. cardinality(l_queue) LOOP
        SELECT count(*) FROM (
            SELECT r.run FROM surefoot.runs r WHERE r.queue = l_queue[i] AND r.held IS NOT NULL AND r.held > now_
            UNION
            SELECT r.run FROM surefoot.runs r WHERE r.worker > '' AND r.queue = l_queue[i]
                AND CASE WHEN r.worker = worker_ THEN r.run = ANY (driven) ELSE r.worker = ANY (living) END
        ) taken INTO busy;
        SELECT count(*), min(s.at) FROM surefoot.starts s
            WHERE s.queue = l_queue[i] AND s.at > now_ - l_micros[i] INTO started, oldest;
        free := free || least(l_concurrency[i] - busy, l_starts[i] - started);
        opens := opens || CASE WHEN l_starts[i] - started <= coalesce(l_concurrency[i] - busy, l_starts[i] - started)
            THEN coalesce(oldest, now_) + l_micros[i] END;
    END LOOP;
    WITH RECURSIVE lane (workflow, queue) AS (
        SELECT w, (SELECT min(r.queue) FROM surefoot.runs r WHERE r.workflow = w AND r.wake IS NOT NULL)
            FROM unnest(workflows) w WHERE cardinality(only_) = 0
        UNION ALL
        SELECT l.workflow, (SELECT min(r.queue) FROM surefoot.runs r
                WHERE r.workflow = l.workflow AND r.queue > l.queue AND r.wake IS NOT NULL)
            FROM lane l WHERE l.queue IS NOT NULL
    ), served AS (
        SELECT l.workflow, l.queue, f.free, f.opens FROM lane l
            LEFT JOIN unnest(l_queue, free, opens) f (queue, free, opens) ON f.queue = l.queue
            WHERE l.queue IS NOT NULL AND (cardinality(queues) = 0 OR l.queue = ANY (queues))
    ), named AS (
        SELECT r.run, r.queue, r.wake, r.held FROM surefoot.runs r
            WHERE r.run = ANY (only_) AND r.workflow = ANY (workflows)
                AND (cardinality(queues) = 0 OR r.queue = ANY (queues))
    ), due AS (
        SELECT d.since, d.run, s.queue FROM served s CROSS JOIN LATERAL (
            SELECT r.wake AS since, r.run FROM surefoot.runs r
                WHERE r.workflow = s.workflow AND r.queue = s.queue AND r.wake <= due_by
                    AND (r.held IS NULL OR r.held <= now_)
                ORDER BY r.wake LIMIT many
        ) d
        UNION ALL
        SELECT n.wake, n.run, n.queue FROM named n WHERE n.wake <= due_by AND (n.held IS NULL OR n.held <= now_)
    ), left_behind AS (
        SELECT 0::bigint AS since, r.run, r.queue FROM surefoot.runs r
            WHERE r.worker > '' AND (r.held IS NULL OR r.held <= now_)
                AND r.workflow = ANY (workflows) AND (cardinality(queues) = 0 OR r.queue = ANY (queues))
                AND CASE WHEN r.worker = worker_ THEN r.run <> ALL (driven) ELSE r.worker <> ALL (living) END
                AND (cardinality(only_) = 0 OR r.run = ANY (only_))
    ), ready AS (
        SELECT a.since, a.run, a.queue, f.free, f.opens,
                row_number() OVER (PARTITION BY a.queue ORDER BY a.since, a.run) AS place
            FROM (
                SELECT DISTINCT ON (b.run) b.since, b.run, b.queue
                    FROM (SELECT * FROM due UNION ALL SELECT * FROM left_behind) b ORDER BY b.run, b.since
            ) a
            LEFT JOIN unnest(l_queue, free, opens) f (queue, free, opens) ON f.queue = a.queue
    )
    SELECT (SELECT coalesce(array_agg(c.run ORDER BY c.since, c.run), '{}') FROM (
                SELECT r.since, r.run FROM ready r WHERE r.free IS NULL OR r.place <= r.free
                    ORDER BY r.since, r.run LIMIT many * 2) c),
           (SELECT min(r.opens) FROM ready r WHERE r.place > r.free),
           (SELECT min(later.wake) FROM (
                SELECT (SELECT min(r.wake) FROM surefoot.runs r
                    WHERE r.workflow = s.workflow AND r.queue = s.queue AND r.wake > now_) AS wake FROM served s
                UNION ALL SELECT n.wake FROM named n WHERE n.wake > now_) later)
        INTO picks, closed, next_wake;
    next_wake := least(next_wake, closed);
    IF cardinality(picks) = 0 THEN
        RETURN;
    END IF;
    -- What somebody else is just taking is passed over; what was taken since we looked as well.
    WITH free_ones AS (
        SELECT r.run FROM surefoot.runs r
            WHERE r.run = ANY (picks) AND (r.held IS NULL OR r.held <= now_)
            ORDER BY array_position(picks, r.run) LIMIT many FOR UPDATE SKIP LOCKED
    ), taken AS (
        UPDATE surefoot.runs r SET held = now_ + (seconds * 1000000)::bigint FROM free_ones f
            WHERE r.run = f.run RETURNING r.run, r.queue
    ), noted AS (
        INSERT INTO surefoot.starts (queue, at, run)
            SELECT t.queue, now_, t.run FROM taken t JOIN unnest(l_queue, l_starts) l (queue, starts)
                ON l.queue = t.queue AND l.starts IS NOT NULL
    )
    SELECT coalesce(array_agg(t.run ORDER BY array_position(picks, t.run)), '{}') FROM taken t INTO chosen;
    DELETE FROM surefoot.starts s USING unnest(l_queue, l_micros) l (queue, micros)
        WHERE s.queue = l.queue AND s.at <= now_ - l.micros;
END $$;

INSERT INTO surefoot.meta (format, store) VALUES (1, uuid_send(gen_random_uuid()));
