"""API keys, for callers of the HTTP door."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("priqueue", "0002_permissions")]

    operations = [
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        help_text="Its jobs are those of the caller key:<name>.",
                        max_length=100,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                r"^[A-Za-z0-9_.@-]+\Z", "Use letters, digits and _ . @ - only."
                            )
                        ],
                    ),
                ),
                ("prefix", models.CharField(editable=False, max_length=16, unique=True)),
                ("digest", models.BinaryField(max_length=32)),
                ("lanes", models.JSONField(default=list)),
                ("handlers", models.JSONField(default=list)),
                (
                    "rate",
                    models.CharField(blank=True, help_text='For example "100/s" or "30/min burst 60".', max_length=40),
                ),
                ("created_at", models.DateTimeField(editable=False)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(editable=False, null=True)),
                ("last_used_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "verbose_name": "API key",
                "permissions": [("enqueue_job", "Can enqueue jobs over HTTP")],
            },
        ),
    ]
