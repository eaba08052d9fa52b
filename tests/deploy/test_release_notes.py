"""The notes of a release are its section of the changelog, or a refusal that says why not."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.release_notes import Mistake, notes
from tests.deploy.test_deploy import ROOT

SCRIPT = ROOT / "scripts" / "release_notes.py"
CHANGELOG = """\
# Changelog

In the form of [Keep a Changelog](https://keepachangelog.com/en/1.1.0/).

## [Unreleased]

### Added

- Not yet.

## [0.3.0] - soon

### Added

- Almost.

## [0.2.0] - 2026-12-01

### Fixed

- A fault; see [upgrades](docs/how-to/upgrade.md#order), [here](#fixed) and
  [there](https://example.com/a).

## [0.1.1] - 2026-11-02

### Fixed

## [0.1.0] - 2026-11-01

- The first.
"""


@pytest.fixture
def changelog(tmp_path: Path) -> Path:
    path = tmp_path / "CHANGELOG.md"
    path.write_text(CHANGELOG)
    return path


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script with what it was started with."""
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False
    )


def test_the_notes_of_a_version_are_its_section_and_no_other(changelog: Path) -> None:
    done = run("0.2.0", "--changelog", changelog)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("### Fixed\n\n- A fault; see")
    assert "The first." not in done.stdout
    assert "Almost." not in done.stdout
    assert run("0.1.0", "--changelog", changelog).stdout == "- The first.\n"


def test_links_to_files_become_addresses_and_others_stay() -> None:
    text = notes(CHANGELOG, "0.2.0", "https://example.com/blob/v0.2.0/")
    assert "(https://example.com/blob/v0.2.0/docs/how-to/upgrade.md#order)" in text
    assert "[here](#fixed)" in text
    assert "[there](https://example.com/a)" in text
    assert "(docs/how-to/upgrade.md#order)" in notes(CHANGELOG, "0.2.0")


@pytest.mark.slow
def test_a_version_without_notes_is_refused_with_the_reason(
    changelog: Path, subtests: pytest.Subtests
) -> None:
    for version, message in [
        ("9.9.9", "there is no section of 9.9.9; released versions: 0.2.0, 0.1.1, 0.1.0"),
        ("0.2", "there is no section of 0.2"),
        ("Unreleased", "Unreleased is not released"),
        ("0.3.0", "0.3.0 is not released: its heading has no date"),
        ("0.1.1", "the section of 0.1.1 is empty"),
    ]:
        with subtests.test(version=version):
            done = run(version, "--changelog", changelog)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.startswith(f"release_notes.py: {message}")


def test_notes_that_a_page_of_a_release_cannot_hold_are_refused() -> None:
    long = "## [1.0.0] - 2026-12-01\n\n" + "- A line.\n" * 13_000
    with pytest.raises(Mistake, match="129999 characters, above 125000"):
        notes(long, "1.0.0")


def test_a_changelog_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run("0.2.0", "--changelog", tmp_path / "none.md")
    assert done.returncode == 2
    assert "none.md" in done.stderr


def test_the_help_has_examples_and_exit_codes() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "release_notes.py 0.2.0 --links https://" in done.stdout
    assert "exit codes: 0 the notes were printed, 2" in done.stdout


def test_the_changelog_of_this_repository_has_a_place_for_what_comes_next() -> None:
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text()
