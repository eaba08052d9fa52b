"""Limits of the machine for a process: open files and memory."""

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from factbook.operations.doctor.findings import Finding, ok, warning
from factbook.settings import Settings

TOPIC: Final = "machine"
_LEAST_FILES: Final = 4_096
# What a process takes at first, and what the largest body of a push takes while it is read.
_PROCESS: Final = 150 * 2**20


def check(settings: Settings) -> Iterator[Finding]:
    """Findings on the limits of this user; the service may run with others."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _LEAST_FILES:
        what = f"A process may have {hard:,} files open, and each connection is one."
        yield warning(TOPIC, what, "Raise it: LimitNOFILE= in systemd, ulimit -n in a shell.")
    else:
        yield ok(TOPIC, "A process may have enough files open.")
    available = _available()
    needed = settings.workers * _PROCESS
    if available is not None and available < needed:
        yield warning(
            TOPIC,
            f"{available / 2**20:,.0f} MiB of memory are free; {settings.workers} processes take "
            f"{needed / 2**20:,.0f} MiB and more with large pushes.",
            "Give the machine more memory, or run fewer processes.",
        )


def _available(file: Path = Path("/proc/meminfo")) -> int | None:
    if not file.exists():
        return None
    for line in file.read_text("ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return None
