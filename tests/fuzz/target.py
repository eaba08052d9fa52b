"""What one target of fuzzing is."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.fuzz import promises

CORPORA: Final = Path(__file__).parent / "corpora"


class Target(NamedTuple):
    """A check of one or several parsers.

    `parsers` are their names below `factbook`. `check` takes any bytes and raises for a broken
    promise. Of all inputs of the long form it gets so many parts as `share` says, and `examples`
    in the short form: fewer where an input takes longer. `seconds` of processor time are allowed
    beside what the input's length allows.
    """

    name: str
    check: Callable[[bytes], None]
    parsers: tuple[str, ...]
    share: int = 20
    examples: int = 40
    seconds: float = 1.0

    def run(self, data: bytes) -> None:
        """Check one input and its time. Only fuzzing measures time."""
        promises.run(self.check, data, self.seconds)

    @property
    def folder(self) -> Path:
        """Where its inputs are kept."""
        return CORPORA / self.name

    def kept(self) -> list[bytes]:
        """The inputs that are kept: examples of every form, and those that once broke it."""
        return [path.read_bytes() for path in sorted(self.folder.iterdir())]


def named(targets: Iterable[Target]) -> dict[str, Target]:
    """The targets by their names."""
    return {target.name: target for target in targets}
