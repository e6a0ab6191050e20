"""Pages: the Python examples of a documentation page, made to check what their comments say.

expression  # → value           has to give this value
expression  # raises Name: text has to raise this, with this text in its message
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[int, str]]:
    """Return each example of a page under docs/ with the number of its first line."""
    text = (ROOT / "docs" / page).read_text()
    return [(text[: found.start(1)].count("\n") + 1, found[1]) for found in _BLOCK.finditer(text)]


def checked(page: str, line: int, code: str) -> CodeType:
    """Return an example as code that checks what its comments say, and fails with the page's own line number."""
    tree = _Checks(_comments(code)).visit(ast.parse(code))
    return compile(ast.increment_lineno(ast.fix_missing_locations(tree), line - 1), f"docs/{page}", "exec")


def gives(value: Any, expected: Any) -> None:
    assert value == expected


@contextmanager
def raises(name: str, text: str) -> Iterator[None]:
    with pytest.raises(Exception) as raised:  # noqa: PT011 (its name and its text are compared below)
        yield
    assert raised.type.__name__ == name
    assert text in str(raised.value)


#: what checked code needs in its namespace
CHECKS: dict[str, Callable[..., Any]] = {"_gives": gives, "_raises": raises}


def _comments(code: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return {token.start[0]: token.string[2:] for token in tokens if token.type == tokenize.COMMENT}


class _Checks(ast.NodeTransformer):
    def __init__(self, comments: dict[int, str]) -> None:
        self.comments = comments

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        comment = self.comments.get(node.end_lineno or 0, "")
        if comment.startswith("→ "):
            call = _placed(f"_gives(None, {comment[2:]})", node)
            call.value.args[0] = node.value
            return call
        return self.visit_Assign(node)

    def visit_Assign(self, node: ast.stmt) -> ast.stmt:
        comment = self.comments.get(node.end_lineno or 0, "")
        if not comment.startswith("raises "):
            return node
        name, _, text = comment.removeprefix("raises ").partition(": ")
        guard = _placed(f"with _raises({name!r}, {text!r}): pass", node)
        guard.body = [node]
        return guard


def _placed(code: str, at: ast.stmt) -> Any:
    """Return a statement that stands where another stands, for tracebacks that show the page's own line."""
    (statement,) = ast.parse(code).body
    for node in ast.walk(statement):
        ast.copy_location(node, at)
    return statement
