"""The integration as configured for a fake Git host on loopback, and a repository to read."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factbook.integrations.git import INTEGRATION
from factbook.outbound.network import Network
from tests.fakes.git import FakeGit, commit
from tests.integrations.asking import Asking
from tests.outbound.asking import network
from tests.service import Time

HOST = "git.example.com"
APP = "acme/app"
TOKEN = "glpat_a_token_of_tests"


class Collector(Asking):
    """The integration for a Git host at an address, through a network that may call loopback."""

    def __init__(
        self,
        fake: FakeGit,
        url: str,
        *,
        time: Time | None = None,
        through: Network | None = None,
        **table: Any,
    ) -> None:
        table = {"host": HOST, "base_url": url} | table
        sender = (through or network()).sender(url)
        super().__init__(INTEGRATION, fake, table, time=time or Time(), sender=sender)


def full(fake: FakeGit, path: str = APP) -> None:
    """Make a repository that has something for every fact, and what is no file of it."""
    files = (
        "Dockerfile",
        "app/compose.yaml",
        "catalog-info.yaml",
        "docs/index.md",
        "setup.cfg",
        "src/app.py",
        "web/app.ts",
    )
    special = {"latest": "link", "vendored": "submodule"}
    commit(fake.folder / f"{path}.git", dict.fromkeys(files, b"text\n"), **special)


# What is collected of `full`.
EVERYTHING: Mapping[str, Any] = {
    "repository.filePaths": [
        "Dockerfile",
        "app/compose.yaml",
        "catalog-info.yaml",
        "docs/index.md",
        "latest",
        "setup.cfg",
        "src/app.py",
        "web/app.ts",
    ],
    "repository.totalFiles": 8,
    "repository.inCatalog": True,
    "repository.fileTypes.docker": 2,
    "repository.fileTypes.yaml": 2,
    "repository.fileTypes.javascript": 1,
    "repository.fileTypes.python": 1,
    "repository.fileTypes.docs": 1,
    "repository.fileTypes.config": 1,
}


def folders() -> list[Path]:
    """The folders that readings have made and not removed."""
    return list(Path(tempfile.gettempdir()).glob("factbook-git-*"))


def processes(text: str) -> dict[int, str]:
    """The command lines of processes which have this in them, by process id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it is gone
            continue
        if text in line:
            found[int(path.parent.name)] = line
    return found
