"""Files the shop writes: an invoice per order, a report per month.

Each appears whole or not at all, and under the same name when its job runs again.
"""

import csv
import io
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string

from project.shop.models import Order

SALES = Path(__file__).parent / "data" / "sales.csv"


def write_invoice(order: Order) -> Path:
    """Write the invoice of ``order`` and return its path."""
    return _write("invoices", f"{order.number}.html", render_to_string("shop/invoice.html", {"order": order}))


def write_report(month: str) -> Path:
    """Write the sales of ``month`` ("2026-10") by product; return the path. LookupError: there are none."""
    with SALES.open(newline="", encoding="utf-8") as file:
        totals = totals_by_product(row for row in csv.DictReader(file) if row["date"].startswith(f"{month}-"))
    if not totals:
        raise LookupError(f"no sales in {month!r}")
    return _write("reports", f"{month}.csv", _as_csv(totals))


def totals_by_product(rows: Iterable[dict[str, str]]) -> dict[str, tuple[int, Decimal]]:
    """Return product → pieces and turnover, the largest turnover first."""
    totals: dict[str, tuple[int, Decimal]] = defaultdict(lambda: (0, Decimal(0)))
    for row in rows:
        pieces, turnover = totals[row["product"]]
        sold = int(row["quantity"])
        totals[row["product"]] = pieces + sold, turnover + sold * Decimal(row["unit_price"])
    return dict(sorted(totals.items(), key=lambda item: (-item[1][1], item[0])))


def _as_csv(totals: dict[str, tuple[int, Decimal]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["product", "pieces", "turnover"])
    writer.writerows([product, pieces, turnover] for product, (pieces, turnover) in totals.items())
    return text.getvalue()


def _write(folder: str, name: str, text: str) -> Path:
    target = settings.DATA_DIR / folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=".draft-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, target)
    return target
