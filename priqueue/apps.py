"""The Django app: checks, and the ``jobs.py`` of every installed app."""

from django.apps import AppConfig
from django.core import checks
from django.utils.module_loading import autodiscover_modules

from priqueue import logs
from priqueue.checks import check_configuration, check_handlers


class PriqueueConfig(AppConfig):
    """Registers the checks, and the handlers by importing the modules that declare them."""

    name = "priqueue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import every ``jobs.py``. A broken one raises: without its handlers a worker buries jobs."""
        checks.register(check_configuration, "priqueue")
        checks.register(check_handlers, "priqueue")
        logs.connect()
        autodiscover_modules("jobs")
