"""The Django app: checks, and the ``jobs.py`` of every installed app."""

from django.apps import AppConfig
from django.core import checks
from django.utils.module_loading import autodiscover_modules

from priqueue.logs import listener


class PriqueueConfig(AppConfig):
    """Registers the checks, and the handlers by importing the modules that declare them."""

    name = "priqueue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import every ``jobs.py``. A broken one raises: without its handlers a worker buries jobs."""
        # Only now: these know the models, which cannot be imported before all apps are there.
        from priqueue import checks as ours  # noqa: PLC0415

        for check in (ours.check_configuration, ours.check_handlers, ours.check_audit):
            checks.register(check, "priqueue")
        checks.register(ours.check_audit_database, "priqueue", checks.Tags.database)
        listener.connect()
        autodiscover_modules("jobs")
