"""Log lines hold no secret, whoever writes them."""

import json
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from factbook.telemetry.logs import LineBound, redact_event, redact_text

TOKEN = "fbk_" + "0aZ9" * 11 + "bY"
PASSWORD = "pa55w0rd"


def test_tokens_and_passwords_are_blotted_out(subtests: pytest.Subtests) -> None:
    for text, expected in [
        (f"token {TOKEN}.", "token [redacted]."),
        (f"Bearer {TOKEN}", "Bearer [redacted]"),
        (f"a{TOKEN} {TOKEN}b", "a[redacted] [redacted]"),
        (TOKEN[:20], "[redacted]"),
        (f"postgresql://user:{PASSWORD}@host/db", "postgresql://[redacted]@host/db"),
        (f"postgresql://:{PASSWORD}@host/db", "postgresql://[redacted]@host/db"),
        (
            f"postgresql://host/db?password={PASSWORD}&x=1",
            "postgresql://host/db?password=[redacted]&x=1",
        ),
        (f"host=a PASSWORD={PASSWORD} user=b", "host=a PASSWORD=[redacted] user=b"),
        ("http://127.0.0.1:8000/a@b", "http://127.0.0.1:8000/a@b"),
        ("the prefix is fbk_ and set:x/y@z", "the prefix is fbk_ and set:x/y@z"),
    ]:
        with subtests.test(text=text, expected=expected):
            assert redact_text(text) == expected


def test_secrets_are_found_however_deep_they_lie() -> None:
    event: dict[str, Any] = {
        "event": f"got {TOKEN}",
        "headers": [("authorization", f"Bearer {TOKEN}")],
        "deep": {"urls": {f"x://u:{PASSWORD}@h": [ValueError(TOKEN)]}},
        "count": 3,
        "ratio": 0.5,
        "ok": True,
        "none": None,
    }
    found = redact_event(None, "info", event)
    assert TOKEN not in str(found)
    assert PASSWORD not in str(found)
    assert {key: found[key] for key in ("count", "ratio", "ok", "none")} == {
        "count": 3,
        "ratio": 0.5,
        "ok": True,
        "none": None,
    }


SCRIPT = """
import logging, sys, structlog
from factbook.settings import Settings
from factbook.telemetry import logs
form, token, url = sys.argv[1:]
logs.configure_logs(Settings(log_format=form))
def fail(value):
    raise ValueError(f"cannot use {value}")
for log in (structlog.get_logger("ours"), logging.getLogger("theirs")):
    log.info("hidden? " + token)
    try:
        fail(url)
    except ValueError:
        log.exception("it failed")
logging.getLogger("theirs").warning("with %s and %s", token, url)
structlog.get_logger("ours").debug("unseen")
"""


@pytest.mark.slow
def test_a_log_that_takes_no_lines_keeps_nothing_from_being_done() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT + "print('done')", "json", TOKEN, "url"],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stdout == "done\n"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "console"])
def test_lines_are_redacted_with_their_stack_traces_and_each_is_written_in_one_piece(
    form: str,
) -> None:
    """Processes may share a file. A write to this kind of socket stays a message of its own."""
    url = f"postgresql://user:{PASSWORD}@host/db"
    received, sent = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with received, sent:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT, form, TOKEN, url],
            stdout=subprocess.PIPE,
            stderr=sent.fileno(),
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            text=True,
            timeout=60,
            check=True,
        )
        received.settimeout(0)
        pieces = [received.recv(65536).decode() for _ in range(5)]
        with pytest.raises(BlockingIOError):
            received.recv(65536)
    assert done.stdout == ""
    assert all(piece.endswith("\n") for piece in pieces)
    lines = "".join(pieces)
    assert TOKEN not in lines
    assert PASSWORD not in lines
    assert lines.count("cannot use postgresql://[redacted]@host/db") == 2
    assert lines.count("Traceback") == 2
    assert "unseen" not in lines
    if form == "json":
        parsed = [json.loads(piece) for piece in pieces]
        assert [line["level"] for line in parsed] == ["info", "error", "info", "error", "warning"]
        assert all(line["timestamp"].endswith("Z") for line in parsed)
        assert parsed[-1]["event"] == "with [redacted] and postgresql://[redacted]@host/db"


@pytest.mark.spec("security.log-lines-are-bounded")
def test_a_library_logs_so_many_lines_a_minute_and_the_rest_is_counted() -> None:
    seconds = 0.0
    bound = LineBound(3, clock=lambda: seconds)

    def logged(times: int, name: str = "theirs") -> list[str]:
        records = [
            logging.LogRecord(name, logging.WARNING, "", 0, "from %s", ("there",), None)
            for _ in range(times)
        ]
        return [record.getMessage() for record in records if bound.filter(record)]

    last = "from there (more lines of this kind are left out for up to a minute)"
    assert logged(10) == ["from there", "from there", last]
    assert logged(1, "others") == ["from there"]
    seconds = 61.0
    assert logged(2) == [
        "from there (7 lines of this kind were left out before)",
        "from there",
    ]
    seconds = 130.0
    assert logged(2) == ["from there", "from there"]
