"""Where sources get the files of repositories from: the code hosts that are configured."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from factbook.outbound.outcomes import Missing


class File(NamedTuple):
    """A file of one repository at one code host; `target` is as that host's integration has it."""

    host: str
    target: str
    path: str


class Files(Protocol):
    """The files of repositories, through whichever code host an entity points to."""

    def locate(self, entity: Mapping[str, Any]) -> tuple[str, str] | Missing:
        """The code host's source and the target there, or why there is none."""

    async def read(self, file: File) -> bytes | Missing:
        """What the default branch has in a file."""

    async def paths(self, ref: str) -> list[str] | Missing:
        """The paths of all files in the repository of the entity with this reference."""
