"""What docs/audit.md says is held against the code."""

import re
from typing import get_args

from priqueue.audit import chain
from priqueue.audit.pages import ACTIONS
from priqueue.audit.verify import Kind
from priqueue.models import AuditEvent
from tests.support.pages import ROOT

PAGE = (ROOT / "docs" / "audit.md").read_text()


def names(head: str) -> list[str]:
    """Return what stands as code in the first column of the table with this head."""
    rows = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()
    return [name for row in rows[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_its_columns_are_those_of_the_table() -> None:
    assert sorted(names("column | what")) == sorted(field.name for field in AuditEvent._meta.fields)


def test_its_actions_are_all_that_there_are() -> None:
    (told,) = re.findall(r"^\| `action` \| `([\w ]+)` \|", PAGE, re.MULTILINE)

    assert told.split() == list(ACTIONS)


def test_its_kinds_of_break_are_those_of_the_check() -> None:
    assert names("kind | meaning") == list(get_args(Kind))


def test_its_parts_of_a_hash_are_those_of_the_chain_in_their_order() -> None:
    (told,) = re.findall(r"hash of the row before as hex, ((?:`\w+`,\s+)+)each", PAGE)

    assert ("previous", *re.findall(r"\w+", told)) == chain.PARTS
