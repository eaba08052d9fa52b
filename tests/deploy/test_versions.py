"""The version stands in one place; package, chart, documentation and release repeat it."""

import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
import yaml

from factbook import __version__
from scripts import release
from tests.deploy.test_deploy import ROOT
from tests.processes import FACTBOOK
from tests.tree import files as repository_files

DAY = date(2026, 12, 1)
# Files that name versions of other things, or of the past.
_OTHERS = (
    "CHANGELOG.md",
    "src/factbook/cli/scaffold/",
    "tests/",
    "scripts/",
    "requirements/",
)


def printed(*command: str | Path, folder: Path = ROOT) -> str:
    """What a command prints."""
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what has the version, and of what a package is made from."""
    for name in {release.CHANGELOG, "pyproject.toml", "README.md", *dict(release.PLACES)}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.slow
@pytest.mark.spec("releases.one-version")
def test_package_chart_and_command_have_the_version_of_the_one_place() -> None:
    chart = yaml.safe_load((ROOT / release.CHART).read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    assert printed(sys.executable, "-m", "hatchling", "metadata", "version") == __version__
    assert printed(FACTBOOK, "--version") == f"factbook {__version__}"
    assert printed(sys.executable, "scripts/release.py", "version") == __version__


def test_every_place_has_the_same_version() -> None:
    assert {one.version for one in release.found(ROOT)} == {__version__}


def test_a_new_version_reaches_the_package_the_chart_and_the_pages(tree: Path) -> None:
    release.prepare(tree, "9.8.7", DAY)
    assert {one.version for one in release.found(tree)} == {"9.8.7"}
    assert printed(sys.executable, "-m", "hatchling", "metadata", "version", folder=tree) == "9.8.7"
    chart = yaml.safe_load((tree / release.CHART).read_text())
    assert chart["version"] == chart["appVersion"] == "9.8.7"
    for name in dict(release.PLACES):
        assert __version__ not in (tree / name).read_text(), name


@pytest.mark.slow
def test_no_other_file_has_the_version() -> None:
    pattern = re.compile(rb"(?<![0-9.])" + re.escape(__version__.encode()) + rb"(?![0-9])")
    files = [path for path in repository_files(ROOT) if path.is_file()]
    names = {
        path.relative_to(ROOT).as_posix() for path in files if pattern.search(path.read_bytes())
    }
    places = {name for name, _ in release.PLACES}
    assert {name for name in names if not name.startswith(_OTHERS)} == places


def test_what_is_unreleased_becomes_the_section_of_the_new_version(tree: Path) -> None:
    before = (tree / release.CHANGELOG).read_text()
    release.prepare(tree, "9.8.7", DAY)
    after = (tree / release.CHANGELOG).read_text()
    assert after.replace("\n## [9.8.7] - 2026-12-01\n", "", 1) == before
    with pytest.raises(release.Mistake, match=r"has a section of 9\.8\.7 already"):
        release.prepare(tree, "9.8.7", DAY)
    with pytest.raises(release.Mistake, match=r"nothing under \[Unreleased\]"):
        release.prepare(tree, "9.9.0", DAY)


@pytest.mark.parametrize(
    ("version", "told"), [("v9.8.7", "is no version"), ("0.0.9", "is older than")]
)
def test_a_version_that_makes_no_sense_changes_nothing(tree: Path, version: str, told: str) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    with pytest.raises(release.Mistake, match=told):
        release.prepare(tree, version, DAY)
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


def test_a_tag_of_the_version_gives_a_workflow_what_it_needs() -> None:
    given = ("check", f"v{__version__}", "--repository", "Acme/Factbook")
    lines = printed(sys.executable, "scripts/release.py", *given).splitlines()
    assert dict(line.split("=") for line in lines) == {
        "version": __version__,
        "image": "ghcr.io/acme/factbook",
        "charts": "ghcr.io/acme/charts",
    }


@pytest.mark.parametrize(
    ("tag", "told"),
    [("v9.9.9", "Chart.yaml"), (__version__, "is no tag"), (f"v{__version__}rc1", "is no tag")],
)
def test_another_tag_ends_the_release(tag: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "release.py", "check", tag, "--repository", "a/b"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


@pytest.mark.spec("releases.one-version")
def test_a_tag_does_not_pass_where_one_place_was_forgotten(tree: Path) -> None:
    chart = tree / release.CHART
    chart.write_text(chart.read_text().replace("appVersion", "appVersion: x\nformerVersion"))
    with pytest.raises(release.Mistake, match=r"Chart\.yaml has no version"):
        release.check(tree, f"v{__version__}", "acme/factbook")
