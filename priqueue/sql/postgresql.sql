CREATE FUNCTION priqueue_audit_append() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
DECLARE
  head record;
BEGIN
  -- One writer at a time until it commits, so that the chain has no fork, whoever inserts and however.
  PERFORM pg_advisory_xact_lock(8102654615614748005);
  SELECT id, hash INTO head FROM priqueue_auditevent ORDER BY id DESC LIMIT 1;
  NEW.id := coalesce(head.id, 0) + 1;
  NEW.previous := coalesce(head.hash, decode(repeat('00', 32), 'hex'));
  NEW.stored_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
  NEW.hash := sha256(convert_to(
    '64:' || encode(NEW.previous, 'hex') ||
    length(NEW.id::text) || ':' || NEW.id ||
    length(NEW.stored_ms::text) || ':' || NEW.stored_ms ||
    length(NEW.at_ms::text) || ':' || NEW.at_ms ||
    length(NEW.namespace) || ':' || NEW.namespace ||
    length(NEW.epoch) || ':' || NEW.epoch ||
    length(NEW.stream_id) || ':' || NEW.stream_id ||
    length(NEW.action) || ':' || NEW.action ||
    length(NEW.caller) || ':' || NEW.caller ||
    length(NEW.job) || ':' || NEW.job ||
    length(NEW.handler) || ':' || NEW.handler ||
    length(NEW.lane) || ':' || NEW.lane ||
    length(NEW.input) || ':' || NEW.input ||
    length(NEW.outcome) || ':' || NEW.outcome ||
    length(NEW.reason) || ':' || NEW.reason ||
    length(NEW.correlation_id) || ':' || NEW.correlation_id ||
    length(NEW.mark) || ':' || NEW.mark, 'UTF8'));
  RETURN NEW;
END
$body$;

CREATE FUNCTION priqueue_audit_refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
BEGIN
  -- An empty table may be truncated: Django flushes every table after a TransactionTestCase.
  IF TG_OP = 'TRUNCATE' AND NOT EXISTS (SELECT 1 FROM priqueue_auditevent) THEN
    RETURN NULL;
  END IF;
  RAISE EXCEPTION 'the audit log is append-only: % is refused', TG_OP
    USING ERRCODE = 'insufficient_privilege', HINT = 'manage.py auditarchive takes out what is old.';
END
$body$;

DO $body$
BEGIN
  -- The table is the one of this schema, whatever path or temporary table a caller puts before it.
  EXECUTE format('ALTER FUNCTION priqueue_audit_append() SET search_path = pg_catalog, %I, pg_temp', current_schema());
  EXECUTE format('ALTER FUNCTION priqueue_audit_refuse() SET search_path = pg_catalog, %I, pg_temp', current_schema());
END
$body$;

REVOKE ALL ON FUNCTION priqueue_audit_append(), priqueue_audit_refuse() FROM PUBLIC;

CREATE TRIGGER priqueue_audit_append BEFORE INSERT ON priqueue_auditevent
FOR EACH ROW EXECUTE FUNCTION priqueue_audit_append();

CREATE TRIGGER priqueue_audit_refuse BEFORE UPDATE OR DELETE ON priqueue_auditevent
FOR EACH ROW EXECUTE FUNCTION priqueue_audit_refuse();

CREATE TRIGGER priqueue_audit_refuse_truncate BEFORE TRUNCATE ON priqueue_auditevent
FOR EACH STATEMENT EXECUTE FUNCTION priqueue_audit_refuse();
