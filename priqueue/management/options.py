"""Options: the kinds of value that commands take, each refused with what would be right."""

import argparse
import re
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from priqueue import jobs

_AGE = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def whole(text: str) -> int:
    """Return a whole number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


def moment(text: str) -> datetime:
    """Return the time that is named: ``2026-11-29T03:00``, in Django's zone, or how long ago, as in ``90m``."""
    age = _AGE.fullmatch(text)
    if age:
        return jobs.now() - timedelta(**{_UNITS[age[2]]: int(age[1])})
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; use 2026-11-29T03:00, or 30s, 90m, 2h, 7d ago")
    return found if timezone.is_aware(found) else timezone.make_aware(found)
