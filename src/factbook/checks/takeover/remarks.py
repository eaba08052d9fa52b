"""Remarks of a takeover: what was left behind, what was changed, and what nobody can tell."""

from typing import Final, NamedTuple

# The check cannot be written.
REFUSED: Final = "refused"
# It can, and something of it is lost or means something else.
CHANGED: Final = "changed"


class Remark(NamedTuple):
    """One remark on a place in what is taken over; `kind` is REFUSED or CHANGED."""

    path: str
    kind: str
    message: str


class Remarks:
    """The remarks on one document, in their order."""

    def __init__(self) -> None:
        self.found: list[Remark] = []

    @property
    def refuses(self) -> bool:
        """True if something cannot be taken over."""
        return any(one.kind == REFUSED for one in self.found)

    def refuse(self, path: str, message: str) -> None:
        """Add what keeps the document from being taken over."""
        self.found.append(Remark(path, REFUSED, message))

    def change(self, path: str, message: str) -> None:
        """Add what is lost or means something else."""
        self.found.append(Remark(path, CHANGED, message))
