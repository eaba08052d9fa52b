"""One reading of hostile catalog files, in a process of its own: `python -m bench.hostile_files`.

It prints the most MB beyond those of the start, and the seconds of CPU.
"""

import asyncio
import resource
import sys
import time
from collections.abc import Iterable, Mapping, Sequence

from factbook.importers import catalog_files
from factbook.importers.catalog_files import FileLocation, RootFile
from factbook.outbound.outcomes import Missing, Outcome

_HEAD = "apiVersion: v1\nkind: {}\nmetadata: {{name: a}}\nspec:\n"


class Files:
    """Files of a repository, by their paths."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self._texts = texts

    def located(self, url: str, *, is_content: bool = False) -> FileLocation | str:
        return f"{url} is elsewhere"

    async def read(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, bytes | Missing]:
        missing = Missing(Outcome.NOT_FOUND)
        return {one: self._texts.get(one.path, missing) for one in wanted}

    async def paths(
        self, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], Sequence[str] | Missing]:
        return {one: list(self._texts) for one in wanted}


def made(name: str) -> tuple[str, Mapping[str, bytes]]:
    """The root file and the others."""
    if name == "placeholders":
        uses = "".join(f"  a{n}: {{$text: ./big}}\n" for n in range(30_000))
        return _HEAD.format("Component") + uses, {"big": "\N{FIRE}".encode() * (256 * 1024)}
    if name == "patterns":
        targets = "".join(f"  - '**/{'d/*/' * 9}{'*a' * (n % 200)}b*'\n" for n in range(1_990))
        paths = {f"{'d/' * 30}{n}/{'a' * 60}.yaml": b"" for n in range(1_000)}
        return f"{_HEAD.format('Location')}  targets:\n{targets}", paths
    targets = "".join(f"  - {n}.yaml\n" for n in range(50))
    values = f"{_HEAD.format('Component')}  x: [{'{a: 1},' * 50_000}1]\n".encode()
    return f"{_HEAD.format('Location')}  targets:\n{targets}", {
        f"{n}.yaml": values for n in range(50)
    }


def main(name: str) -> None:
    """Read the files of a name."""
    root, texts = made(name)
    location = FileLocation("acme/shop", "HEAD", "catalog-info.yaml")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    found = asyncio.run(
        catalog_files.read_catalog_files(
            [RootFile("code.test/acme/shop", location, root.encode())], Files(texts)
        )
    )
    spent = time.process_time() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert not found["code.test/acme/shop"].whole
    print((most - before) / 1e3, spent)


if __name__ == "__main__":
    main(sys.argv[1])
