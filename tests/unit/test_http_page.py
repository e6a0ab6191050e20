"""docs/http.md is held against the code: its operations, its fields, its problems, its limits."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from priqueue.api import bodies, credentials, document, problems, schemas, submission, views
from priqueue.limits import AT_THE_DOOR

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "http.md").read_text()
DOCUMENT: Any = json.loads(json.dumps(document.made().get_openapi_schema(path_prefix="/")))
MODULES = (bodies, credentials, problems, submission, views)


def operations() -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path.lstrip('/')}": operation
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    }


def test_its_table_names_every_operation_with_its_successes() -> None:
    section = PAGE.partition("## Operations")[2].partition("\n## ")[0]
    told = {
        name: set(re.findall(r"\b2\d\d\b", rest))
        for name, rest in re.findall(r"^\| `([A-Z]+ [^`]+)` \|(.*)\|$", section, re.M)
    }

    assert told == {
        name: {status for status in operation["responses"] if status < "300"}
        for name, operation in operations().items()
    }


def test_its_table_names_every_field() -> None:
    section = PAGE.partition("| field | what it says |")[2].partition("\n\n")[0]

    assert set(re.findall(r"`(\w+)`(?=[,` ][^|]*\|)", section)) >= schemas.Enqueue.model_fields.keys()


def in_code() -> set[tuple[str, str]]:
    """Return the word and status of every problem that the code can raise."""
    source = "".join(inspect.getsource(module) for module in MODULES)
    return {(word, status) for status, word in re.findall(r'Problem\(\s*(\d{3}), "([a-z-]+)"', source)}


def test_its_table_names_every_problem_with_its_status() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \|", PAGE, re.MULTILINE)) == in_code()


@pytest.mark.parametrize("name", operations())
def test_the_document_says_of_every_operation_what_is_refused_and_how(name: str) -> None:
    responses = operations()[name]["responses"]

    refused = {status: response for status, response in responses.items() if status >= "400"}
    assert {"401", "403", "500", "503"} <= refused.keys()
    for status, response in refused.items():
        (content_type,) = response["content"]
        assert content_type == "application/problem+json"
        assert ("Retry-After" in response["headers"]) == (status in ("429", "503"))
        assert status in {told for _, told in in_code()}


def test_everything_that_comes_in_or_goes_out_has_an_example() -> None:
    shapes = DOCUMENT["components"]["schemas"]

    assert {name for name, shape in shapes.items() if "examples" not in shape} <= {
        "Fault",
        "LaneOut",
        "Result",
        "State",
    }


def test_the_document_names_both_ways_to_come_in() -> None:
    schemes = DOCUMENT["components"]["securitySchemes"]

    assert schemes["ApiKeyAuth"] == {"type": "http", "scheme": "bearer"}
    assert (schemes["SessionAuth"]["type"], schemes["SessionAuth"]["in"]) == ("apiKey", "cookie")


def test_it_tells_the_limits_of_the_code() -> None:
    assert f"{AT_THE_DOOR.count} jobs a second, with a burst of {AT_THE_DOOR.burst}" in " ".join(PAGE.split())
    assert f"up to {bodies.BATCH_ITEMS} jobs" in PAGE
    assert schemas.EnqueueBatch.model_fields["jobs"].metadata[1].max_length == bodies.BATCH_ITEMS
    assert credentials.PERMISSION in PAGE


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)", PAGE))
def test_the_pages_it_links_to_exist(target: str) -> None:
    assert (ROOT / "docs" / target).is_file()
