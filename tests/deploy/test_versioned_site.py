"""The site of the documentation has a folder for each version, one of which is the latest."""

import subprocess
import sys

import pytest

from scripts.versioned_site import is_newest
from tests.deploy.test_deploy import ROOT


@pytest.mark.parametrize(
    ("version", "tags", "newest"),
    [
        ("0.2.0", ["v0.1.0", "v0.2.0"], True),
        ("0.10.0", ["v0.9.0"], True),
        ("0.1.1", ["v0.1.0", "v0.2.0"], False),
        ("main", [], False),
    ],
)
def test_the_newest_release_is_where_readers_begin(
    version: str, tags: list[str], newest: bool
) -> None:
    assert is_newest(version, tags) is newest


@pytest.mark.parametrize("name", ["v0.2.0", "0.2", "next"])
def test_what_is_no_version_is_refused(name: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "versioned_site.py", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{name} is neither main nor a version such as 0.2.0" in done.stderr
