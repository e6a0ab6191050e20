CREATE TRIGGER priqueue_audit_no_update BEFORE UPDATE ON priqueue_auditevent
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only: UPDATE is refused'); END;

CREATE TRIGGER priqueue_audit_no_delete BEFORE DELETE ON priqueue_auditevent
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only: DELETE is refused'); END;
