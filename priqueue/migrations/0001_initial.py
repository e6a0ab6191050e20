"""The audit log: a table to which rows are added and nothing else."""

from django.db import migrations, models

from priqueue.guards import Guard


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("stored_ms", models.BigIntegerField()),
                ("at_ms", models.BigIntegerField()),
                ("namespace", models.CharField(max_length=64)),
                ("epoch", models.CharField(max_length=64)),
                ("stream_id", models.CharField(max_length=64)),
                ("action", models.CharField(max_length=32)),
                ("caller", models.CharField(max_length=200)),
                ("job", models.CharField(max_length=200)),
                ("handler", models.CharField(max_length=200)),
                ("lane", models.CharField(max_length=64)),
                ("input", models.TextField()),
                ("outcome", models.CharField(max_length=200)),
                ("reason", models.TextField()),
                ("correlation_id", models.CharField(max_length=200)),
                ("mark", models.CharField(max_length=64)),
                ("previous", models.BinaryField(max_length=32)),
                ("hash", models.BinaryField(max_length=32)),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["job", "id"], name="priqueue_audit_job"),
                    models.Index(fields=["correlation_id", "id"], name="priqueue_audit_correlation_id"),
                    models.Index(fields=["caller", "id"], name="priqueue_audit_caller"),
                    models.Index(fields=["action", "id"], name="priqueue_audit_action"),
                    models.Index(fields=["handler", "id"], name="priqueue_audit_handler"),
                    models.Index(fields=["lane", "id"], name="priqueue_audit_lane"),
                    models.Index(fields=["at_ms", "id"], name="priqueue_audit_at_ms"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "epoch", "stream_id"), name="priqueue_audit_once")
                ],
            },
        ),
        Guard(),
    ]
