"""Access to files of repositories through the configured code hosts."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from factbook.outbound.outcomes import Missing


class File(NamedTuple):
    """File of one repository at one code host; `target` is in that host's form."""

    host: str
    target: str
    path: str


class Files(Protocol):
    """Reader for files of repositories at whichever code host an entity points to."""

    def locate(self, entity: Mapping[str, Any]) -> tuple[str, str] | Missing:
        """The code host's source and the target there, or the reason that there is none."""

    async def read(self, file: File) -> bytes | Missing:
        """The contents of a file on the default branch."""

    async def paths(self, ref: str) -> list[str] | Missing:
        """The paths of all files in the repository of the entity with this reference."""
