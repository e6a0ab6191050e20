"""Template tags of the pages: addresses within the mount, numbers and times in words."""

from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from priqueue import words
from priqueue.health import Finding
from priqueue.jobs import now

register = template.Library()
for _word in (words.count, words.duration, words.percent, words.rate, words.size, words.short_id, words.short_error):
    register.filter(_word.__name__, _word)


@register.simple_tag(takes_context=True)
def page_url(context: dict[str, Any], name: str, **parts: str) -> str:
    """Return the address of one of the pages: ``{% page_url "lane" lane=name %}``."""
    return str(context["visit"].url(name, **parts))


@register.simple_tag(takes_context=True)
def about_page(context: dict[str, Any], what: str) -> str:
    """Return the address of the page about something: ``{% about_page "dead" %}``."""
    return str(context["visit"].about(what))


@register.simple_tag(takes_context=True)
def about_url(context: dict[str, Any], finding: Finding) -> str:
    """Return the address of the page that tells more of something that is wrong."""
    return str(context["visit"].about(finding.about))


@register.simple_tag(takes_context=True)
def person(context: dict[str, Any], caller: str) -> str:
    """Return a caller with the user's name, ``ana (user:7)``, if the view expected it: ``{% person job.caller %}``."""
    return str(context["visit"].people.told(caller))


@register.simple_tag(takes_context=True)
def finding_text(context: dict[str, Any], finding: Finding) -> str:
    """Return what is wrong, with the name of the user it is about: ``low is paused by ana (user:7), 40 m left``."""
    who = finding.caller
    return finding.text.replace(who, person(context, who), 1) if who else finding.text


@register.filter
def hundred(part: float) -> str:
    """Return a part of 1 as a length of a hundred."""
    return f"{min(max(part, 0), 1) * 100:.1f}"


@register.filter
def worker_name(worker_id: str) -> str:
    """Return a worker's id without its random end: ``web1:311``."""
    name, _, end = worker_id.rpartition(":")
    return name or end


@register.filter
def moment(at: datetime) -> SafeString:
    """Return a time as how long ago it was, or is to come; whole in its title, and for scripts that let it go on."""
    seconds = (now() - at).total_seconds()
    told = f"{words.duration(seconds)} ago" if seconds >= 0 else f"in {words.duration(-seconds)}"
    return format_html(
        '<time datetime="{}" title="{}" data-moment>{}</time>', at.isoformat(timespec="milliseconds"), full(at), told
    )


@register.filter
def full(at: datetime) -> str:
    """Return a time in the reader's zone, with its name: ``2026-11-30 03:12:04 UTC``."""
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}"


@register.filter
def clock(at: datetime) -> str:
    """Return the time of day in the project's zone, with its name: pages in a browser may be of another."""
    return f"{timezone.localtime(at):%H:%M:%S %Z}"
