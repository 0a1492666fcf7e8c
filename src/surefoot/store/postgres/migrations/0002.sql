-- Format 2. What a worker says about itself: since when it is there, and what it serves.

SELECT pg_advisory_xact_lock(hashtextextended('surefoot schema', 0));
DO $$ BEGIN
    IF (SELECT format FROM surefoot.meta) >= 2 THEN
        RAISE EXCEPTION 'another process was quicker' USING ERRCODE = 'SF002';
    END IF;
END $$;

ALTER TABLE surefoot.workers
    ADD COLUMN since timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD COLUMN about text NOT NULL DEFAULT '';

-- As renew_1, with what the worker says about itself.
CREATE FUNCTION surefoot.renew_2(worker_ text, host_ text, pid_ bigint, lease interval, about_ text)
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO surefoot.workers AS w (worker, host, pid, expires, about)
        VALUES (worker_, host_, pid_, clock_timestamp() + lease, about_)
        ON CONFLICT (worker) DO UPDATE SET expires = excluded.expires, about = excluded.about;
    RETURN surefoot.micros_1();
END $$;

UPDATE surefoot.meta SET format = 2;
