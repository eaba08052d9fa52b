"""Real catalog files of public repositories, gathered by the manifest `catalog_files.json`.

    python -m tests.contracts.catalog_files DIRECTORY

The files belong to others, so that only their places and digests are kept here. A file that is in
the directory already is not asked for again.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx2

MANIFEST = Path(__file__).with_suffix(".json")
HOST = "https://raw.githubusercontent.com"
_AT_ONCE = 4


class CatalogFile(NamedTuple):
    """File of a repository at a commit."""

    repository: str
    commit: str
    path: str
    sha256: str

    @property
    def address(self) -> str:
        """The path of its content at the host."""
        return f"/{self.repository}/{self.commit}/{quote(self.path)}"

    def within(self, directory: Path) -> Path:
        """The place of the file in a directory of gathered ones."""
        return directory / self.repository / self.path


def manifest(file: Path = MANIFEST) -> list[CatalogFile]:
    """The files of a manifest."""
    return [
        CatalogFile(one["repository"], one["commit"], path, sha256)
        for one in json.loads(file.read_text())
        for path, sha256 in one["files"].items()
    ]


def differing(directory: Path, files: Iterable[CatalogFile]) -> list[CatalogFile]:
    """The files that are not in the directory with the content of the manifest."""
    return [one for one in files if not _is_there(directory, one)]


def gather(directory: Path, files: Iterable[CatalogFile], host: str) -> Iterator[str]:
    """Fetch what is not in the directory; gives a sentence for each file that cannot be had."""
    with (
        httpx2.Client(base_url=host, follow_redirects=True, timeout=30) as client,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):

        def fetch(one: CatalogFile) -> str:
            return _fetched(client, directory, one)

        yield from filter(None, pool.map(fetch, differing(directory, files)))


def _is_there(directory: Path, one: CatalogFile) -> bool:
    place = one.within(directory)
    return place.is_file() and hashlib.sha256(place.read_bytes()).hexdigest() == one.sha256


def _fetched(client: httpx2.Client, directory: Path, one: CatalogFile) -> str:
    """Write a file; gives the reason if it is not to be had, else nothing."""
    try:
        answer = client.get(one.address)
    except httpx2.HTTPError as error:
        return f"{one.address}: {error or type(error).__name__}"
    if answer.status_code != 200:
        return f"{one.address}: the host answers {answer.status_code}"
    if hashlib.sha256(answer.content).hexdigest() != one.sha256:
        return f"{one.address}: the content is another one"
    place = one.within(directory)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(answer.content)
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Gather the files; 1 if any cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m tests.contracts.catalog_files")
    parser.add_argument("directory", type=Path, metavar="DIRECTORY")
    parser.add_argument("--host", default=HOST, help=f"where raw files are ({HOST})")
    parser.add_argument("--manifest", default=MANIFEST, type=Path, help="another list of files")
    given = parser.parse_args(arguments)
    files = manifest(given.manifest)
    problems = list(gather(given.directory, files, given.host))
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    sys.stdout.write(f"{len(files) - len(problems)} of {len(files)} files are there\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
