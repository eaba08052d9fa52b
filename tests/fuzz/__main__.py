"""Fuzz every parser for long: `python -m tests.fuzz [--inputs N] [--target NAME] [--jobs N]`.

Each target is a process of its own (tests/fuzz/guided.py), which begins with the inputs in
tests/fuzz/corpora. What it finds beside them is left in .fuzz/found, and inputs that break a
promise in .fuzz/crashes; then this ends with 1. To try one again: `--again FILE --target NAME`.

`--keep` adds to the corpora the smallest of the inputs found that reach something new, within the
bounds of what is kept. A crash that was mended is kept by copying its input there under a name
that says what it was.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final, NamedTuple

from tests.fuzz import guided, keeping
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

INPUTS: Final = 1_000_000
WORK: Final = Path(".fuzz")
_NOISE: Final = ("#", "stat::", "INFO:", "WARNING:", "0x", "MS:", "Base64:", "==")
_STAT: Final = re.compile(r"stat::(\w+):\s+(\d+)")


class Done(NamedTuple):
    """What became of a target: inputs tried, inputs found that reach new lines, seconds."""

    target: Target
    status: int
    tried: int
    found: int
    seconds: float
    log: str


def main() -> int:
    """Fuzz as the command line says; 1 when a promise was broken."""
    asked = _asked()
    chosen = _chosen(asked.target)
    if asked.again:
        for target in chosen:
            target.run(asked.again.read_bytes())
        return 0
    crashes = _folder("crashes")
    if not guided.has_atheris():
        _say("Atheris is not installed; it has wheels for Linux on x86-64 only. Inputs are made at")
        _say("random, without looking at what they reach.")
    parts = sum(target.share for target in chosen)
    started = time.monotonic()
    with ThreadPoolExecutor(asked.jobs) as pool:
        work = [
            pool.submit(_fuzz, target, -(-asked.inputs * target.share // parts), crashes)
            for target in chosen
        ]
        done = [_told(one.result()) for one in as_completed(work)]
    tried, broken = sum(one.tried for one in done), [one for one in done if one.status]
    minutes = (time.monotonic() - started) / 60
    _say(f"{tried:,} inputs in {minutes:.1f} minutes; {len(broken)} targets broken")
    shutil.rmtree(_folder("temporary"))
    if asked.keep:
        keeping.keep([(one.target, _folder(f"found/{one.target.name}")) for one in done])
    return 1 if broken else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--inputs", type=int, default=INPUTS, help="of all targets together")
    parser.add_argument(
        "--target",
        action="append",
        choices=sorted(TARGETS),
        metavar="NAME",
        help=f"only this one; one of {', '.join(TARGETS)}",
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--keep", action="store_true", help="add what was found to the corpora")
    parser.add_argument("--again", type=Path, metavar="FILE", help="try one input again")
    return parser.parse_args()  # fmt: skip


def _chosen(names: list[str] | None) -> list[Target]:
    return [TARGETS[name] for name in names or TARGETS]


def _fuzz(target: Target, inputs: int, crashes: Path) -> Done:
    started = time.monotonic()
    found = _folder(f"found/{target.name}")
    before = len(list(found.iterdir()))
    ended = subprocess.run(
        [
            *(sys.executable, "-m", guided.__name__, target.name, str(inputs), str(found)),
            *(str(crashes), str(random.randrange(1, 2**31))),
        ],
        # Nothing runs at the end of such a process, which leaves its files behind.
        env={**os.environ, "TMPDIR": str(_folder("temporary").resolve())},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    log = ended.stdout + ended.stderr
    (WORK / f"{target.name}.log").write_text(log)
    stats = dict(_STAT.findall(log))
    tried = int(stats.get("number_of_executed_units", 0))
    new = len(list(found.iterdir())) - before
    return Done(target, ended.returncode, tried, new, time.monotonic() - started, log)


def _told(done: Done) -> Done:
    """Say what became of a target; of one that broke a promise, why and with which input."""
    each = done.tried / done.seconds
    _say(f"{done.target.name:16} {done.tried:9,} inputs {each:7,.0f}/s {done.found:5,} new"
         f"{'  BROKEN' if done.status else ''}")  # fmt: skip
    if done.status:
        lines = done.log.splitlines()
        _say("\n".join(line for line in lines if not line.startswith(_NOISE))[-4_000:])
    return done


def _folder(name: str) -> Path:
    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
