#!/usr/bin/env python3
"""Version and preparation of a release. It runs before anything is installed."""

import argparse
import re
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = "src/factbook/__init__.py"
CHART: Final = "deploy/chart/factbook/Chart.yaml"
CHANGELOG: Final = "CHANGELOG.md"
# Every file with the version, and what stands before it. The first is the source of the others.
PLACES: Final = (
    (SOURCE, r'^__version__ = "'),
    (CHART, r"^version: "),
    (CHART, r'^appVersion: "'),
    ("server.json", r'^  "version": "'),
    ("deploy/agent-plugin/.claude-plugin/plugin.json", r'^  "version": "'),
    ("deploy/pipelines/gitlab.yml", r"^#       ref: v"),
    ("docs/how-to/pipelines.md", r"(?:ref: |/github@)v"),
    ("docs/how-to/kubernetes.md", r"image\.tag="),
    ("docs/how-to/connect.md", r"`Factbook "),
    ("docs/reference/client.md", r"pip install factbook-"),
    ("docs/start.md", r"pip install factbook-"),
)
_NUMBER: Final = r"\d+\.\d+\.\d+"
_UNRELEASED: Final = re.compile(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)

EXAMPLES: Final = """\
examples:
  release.py version                                the version of this checkout
  release.py prepare 0.2.0                          write it everywhere, and date the changelog
  release.py check v0.2.0 --repository acme/factbook
      fail unless the tag is the version of package, chart and documentation; print what a
      release workflow needs, as NAME=VALUE
"""


class Mistake(Exception):
    """A reason not to release, in a sentence."""


class Place(NamedTuple):
    """A version in a file."""

    file: str
    version: str


def found(root: Path) -> list[Place]:
    """Every place of the version.

    Raises Mistake where a file has none.
    """
    places = []
    for file, before in PLACES:
        text = (root / file).read_text()
        versions = re.findall(rf"(?:{before})({_NUMBER})", text, re.MULTILINE)
        if not versions:
            raise Mistake(f"{file} has no version behind {before}")
        places += [Place(file, version) for version in versions]
    return places


def version(root: Path) -> str:
    """The version of the package, which the others repeat."""
    return found(root)[0].version


def check(root: Path, tag: str, repository: str) -> dict[str, str]:
    """Names and values that a workflow needs of a release.

    Raises Mistake where the tag is not `v` and the one version of this checkout.
    """
    wanted = tag.removeprefix("v")
    if not re.fullmatch(rf"v{_NUMBER}", tag):
        raise Mistake(f"{tag} is no tag of a release, such as v0.2.0")
    odd = [one for one in found(root) if one.version != wanted]
    if odd:
        told = ", ".join(dict.fromkeys(f"{one.version} in {one.file}" for one in odd))
        raise Mistake(f"the tag is {tag}, but there is {told}")
    owner, _, name = repository.lower().partition("/")
    if not owner or not name:
        raise Mistake(f"{repository} is no repository, such as acme/factbook")
    # Registries take lower case alone.
    return {
        "version": wanted,
        "image": f"ghcr.io/{owner}/{name}",
        "charts": f"ghcr.io/{owner}/charts",
    }


def prepare(root: Path, new: str, day: date) -> None:
    """Write a version to every place, and put what is unreleased under it.

    Raises Mistake, and writes nothing, where that makes no sense.
    """
    if not re.fullmatch(_NUMBER, new):
        raise Mistake(f"{new} is no version, such as 0.2.0")
    old = version(root)
    if _order(new) < _order(old):
        raise Mistake(f"{new} is older than {old}")
    changelog = root / CHANGELOG
    text = changelog.read_text()
    if f"\n## [{new}]" in text:
        raise Mistake(f"{CHANGELOG} has a section of {new} already")
    section = _UNRELEASED.search(text)
    if section is None or not section[1].strip():
        raise Mistake(f"{CHANGELOG} has nothing under [Unreleased]")
    heading = f"## [Unreleased]\n\n## [{new}] - {day.isoformat()}\n"
    changelog.write_text(text.replace("## [Unreleased]\n", heading, 1))
    for file, before in PLACES:
        path = root / file
        written = re.sub(
            rf"({before}){_NUMBER}", rf"\g<1>{new}", path.read_text(), flags=re.MULTILINE
        )
        path.write_text(written)


def _order(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split(".")))


def _told_version(_given: argparse.Namespace) -> None:
    print(version(ROOT))


def _told_check(given: argparse.Namespace) -> None:
    for name, value in check(ROOT, given.tag, given.repository).items():
        print(f"{name}={value}")


def _told_preparation(given: argparse.Namespace) -> None:
    prepare(ROOT, given.version, given.date)
    print(f"Prepared {given.version}. Look at `git diff`, commit it, and tag it v{given.version}.")


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    made = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = made.add_subparsers(required=True, metavar="ACTION")

    def action(
        name: str, text: str, do: Callable[[argparse.Namespace], None]
    ) -> argparse.ArgumentParser:
        added = actions.add_parser(name, help=text, description=text)
        added.set_defaults(do=do)
        return added

    action("version", "Print the version.", _told_version)
    checked = action("check", "Compare a tag with every place of the version.", _told_check)
    checked.add_argument("tag", metavar="TAG", help="the tag, such as v0.2.0")
    checked.add_argument(
        "--repository",
        metavar="OWNER/NAME",
        required=True,
        help="repository on GitHub; its owner's registry gets image and chart",
    )
    prepared = action("prepare", "Write a version to every place of it.", _told_preparation)
    prepared.add_argument("version", metavar="VERSION", help="the new version, such as 0.2.0")
    prepared.add_argument(
        "--date",
        metavar="DAY",
        type=date.fromisoformat,
        default=datetime.now(UTC).date(),
        help="day of the release, such as 2026-12-01; today unless given",
    )
    return made


def main() -> int:
    """Do what was asked for; 2 where there is a reason not to."""
    given = parser().parse_args()
    try:
        given.do(given)
    except Mistake as mistake:
        print(f"release.py: {mistake}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
