"""What has no table, but permissions: the queue and its dead letters."""

from django.db import migrations, models

_ID = ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))


class Migration(migrations.Migration):
    dependencies = [("priqueue", "0001_initial")]

    operations = [
        migrations.AlterModelOptions(
            name="auditevent", options={"default_permissions": ("view",), "verbose_name_plural": "Audit log"}
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[_ID],
            options={
                "managed": False,
                "default_permissions": (),
                "verbose_name": "queue",
                "verbose_name_plural": "Overview",
                "permissions": [
                    ("view_queue", "Can view the queue"),
                    ("pause_lane", "Can pause and resume lanes"),
                    ("cancel_job", "Can cancel jobs"),
                    ("drain_worker", "Can drain workers"),
                ],
            },
        ),
        migrations.CreateModel(
            name="DeadLetter",
            fields=[_ID],
            options={
                "managed": False,
                "default_permissions": (),
                "verbose_name": "dead letter",
                "verbose_name_plural": "Dead letters",
                "permissions": [
                    ("view_payload", "Can view payloads, error messages and tracebacks"),
                    ("requeue_letter", "Can requeue dead letters"),
                    ("purge_letter", "Can purge dead letters"),
                ],
            },
        ),
    ]
