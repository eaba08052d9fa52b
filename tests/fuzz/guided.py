"""The process that fuzzes one target: `python -m tests.fuzz.guided NAME RUNS FOUND CRASHES SEED`.

Atheris looks at which lines of factbook an input reaches, and goes on from those that reached new
ones, which it leaves in the folder FOUND. An input that breaks a promise is left in CRASHES, and
ends the process with a status other than 0. Where there is no Atheris, as many inputs are made at
random. The last line says what was done.
"""

import importlib
import itertools
import random
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.fuzz.target import Target

LONGEST: Final = 4_096
_SECONDS: Final = 600
# Of so many inputs one is also tried with a piece of it repeated, up to ten times that long.
_STRETCHED: Final = 100


def guided(name: str, runs: int, found: Path, crashes: Path, seed: int) -> None:
    """Fuzz a target with Atheris, which ends the process."""
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["factbook"], enable_loader_override=False):
        target, mutated = _parts(name)
    kept = target.kept()

    def changed(data: bytes, most: int, number: int) -> bytes:
        chance = random.Random(number)
        if chance.random() < 0.3:
            made: bytes = atheris.Mutate(data, most)
            return made
        return bytes(mutated(data, chance, kept)[:most])

    arguments = [
        sys.argv[0],
        f"-runs={runs}",
        f"-seed={seed}",
        f"-max_len={LONGEST}",
        f"-timeout={_SECONDS}",
        "-rss_limit_mb=4096",
        "-len_control=0",
        "-print_final_stats=1",
        f"-artifact_prefix={crashes}/{name}-",
        str(found),
        str(target.folder),
    ]
    atheris.Setup(arguments, _stretching(target, crashes, seed), custom_mutator=changed)
    atheris.Fuzz()


def at_random(target: "Target", runs: int, crashes: Path, seed: int) -> None:
    """Fuzz a target without looking at what its inputs reach."""
    mutating = importlib.import_module("tests.fuzz.mutating")
    kept, chance, started = target.kept(), random.Random(seed), time.monotonic()
    run = _stretching(target, crashes, seed)
    for _ in range(runs):
        data = mutating.mutated(chance.choice(kept), chance, kept)[:LONGEST]
        _left(run, data, crashes / f"{target.name}-crash")
    seconds = max(1, round(time.monotonic() - started))
    sys.stderr.write(f"stat::number_of_executed_units: {runs}\n")
    sys.stderr.write(f"stat::average_exec_per_sec: {runs // seconds}\n")


def _stretching(target: "Target", crashes: Path, seed: int) -> Callable[[bytes], None]:
    """What tries an input, and a few of them stretched."""
    mutating = importlib.import_module("tests.fuzz.mutating")
    chance, numbers = random.Random(seed), itertools.count()

    def run(data: bytes) -> None:
        target.run(data)
        if next(numbers) % _STRETCHED == 0:
            long = mutating.stretched(data, chance)
            _left(target.run, long, crashes / f"{target.name}-stretched")

    return run


def _left(run: Callable[[bytes], None], data: bytes, file: Path) -> None:
    """Try an input, and leave it in a file if it breaks a promise."""
    try:
        run(data)
    except Exception:
        file.write_bytes(data)
        raise


def _parts(name: str) -> tuple["Target", Callable[..., bytes]]:
    """The target and what changes its inputs, imported only now, so that they can be observed."""
    targets = importlib.import_module("tests.fuzz.targets")
    mutating = importlib.import_module("tests.fuzz.mutating")
    return targets.TARGETS[name], mutating.mutated


def has_atheris() -> bool:
    """Whether it is installed; there are wheels for Linux on x86-64 only."""
    return find_spec("atheris") is not None


if __name__ == "__main__":
    name_, runs_, found_, crashes_, seed_ = sys.argv[1:]
    if has_atheris():
        guided(name_, int(runs_), Path(found_), Path(crashes_), int(seed_))
    else:
        at_random(_parts(name_)[0], int(runs_), Path(crashes_), int(seed_))
