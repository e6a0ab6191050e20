"""apikey: make, list and revoke the keys with which outside callers prove who they are."""

import argparse
import json
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from priqueue import apikeys, jobs, wiring
from priqueue.handlers import registry
from priqueue.management.options import whole
from priqueue.management.sessions import session
from priqueue.management.text import table, visible
from priqueue.models import ApiKey

_MOST_DAYS = 36_500


class Command(BaseCommand):
    """Makes, lists and revokes API keys."""

    help = "Make, list and revoke the API keys of the HTTP door. A token is printed once, when its key is made."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the actions and their options."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="create | list | revoke")
        create = actions.add_parser("create", help="make a key and print its token, once")
        create.add_argument("name", help="its jobs are those of the caller key:NAME")
        create.add_argument(
            "--handlers", required=True, type=_names, help="the handlers it may use, by comma; * for all"
        )
        create.add_argument("--lanes", type=_names, default=[apikeys.ALL], help="the lanes it may use; by default all")
        create.add_argument("--rate", default="", help='a limit of its own, such as "100/s" or "30/min burst 60"')
        create.add_argument("--days", type=_days, help="expire after so many days")
        listed = actions.add_parser("list", help="list the keys, without any secret")
        listed.add_argument("--json", action="store_true", help="print lines of JSON")
        actions.add_parser("revoke", help="let a key open the door no more").add_argument("name")

    def handle(self, **options: Any) -> None:
        """Do what is asked for."""
        with session():
            wiring.settings()
            getattr(self, f"_{options['action']}")(options)

    def _create(self, options: dict[str, Any]) -> None:
        _check_known("lane", options["lanes"], wiring.settings().lane_names)
        _check_known("handler", options["handlers"], [handler.name for handler in registry if handler.api])
        days = options["days"]
        expires_at = jobs.now() + timedelta(days=days) if days else None
        try:
            _, token = apikeys.create(
                options["name"], lanes=options["lanes"], handlers=options["handlers"], rate=options["rate"],
                expires_at=expires_at,
            )  # fmt: skip
        except ValidationError as faults:
            raise CommandError(
                "; ".join(f"{name}: {' '.join(told)}" for name, told in faults.message_dict.items())
            ) from None
        except ValueError as fault:
            raise CommandError(f"rate: {fault}") from None
        self.stderr.write("This token is shown once and kept nowhere. Send it as Authorization: Bearer <token>.")
        self.stdout.write(token)

    def _list(self, options: dict[str, Any]) -> None:
        keys = ApiKey.objects.order_by("name")
        if options["json"]:
            for key in keys:
                self.stdout.write(json.dumps(_described(key)))
            return
        rows = [["" if value is None else _joined(value) for value in _described(key).values()] for key in keys]
        self.stdout.write(table([*_described(ApiKey())], rows))

    def _revoke(self, options: dict[str, Any]) -> None:
        if not apikeys.revoke(list(ApiKey.objects.filter(name=options["name"]))):
            raise CommandError(f"no key is called {visible(options['name'])}, or it is revoked already")
        self.stdout.write(f"revoked {visible(options['name'])}")


def _days(text: str) -> int:
    days = whole(text)
    if days > _MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text} are more than {_MOST_DAYS} days; leave it out for no expiry")
    return days


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("name at least one, or *")
    return names


def _check_known(kind: str, given: list[str], known: Any) -> None:
    for name in given:
        if name not in (apikeys.ALL, *known):
            raise CommandError(f"{kind} {visible(name)}: choose from {', '.join(known) or 'none'}, or *")


def _described(key: ApiKey) -> dict[str, Any]:
    times = {name: _time(getattr(key, name)) for name in ("created_at", "expires_at", "revoked_at", "last_used_at")}
    return {
        "name": key.name,
        "prefix": key.prefix,
        "lanes": key.lanes,
        "handlers": key.handlers,
        "rate": key.rate,
        **times,
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")


def _joined(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)
