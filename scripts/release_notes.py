#!/usr/bin/env python3
"""Print what CHANGELOG.md says of a release, as the notes of that release.

Links to files of the repository lead nowhere on the page of a release, unless --links gives the
address that they are relative to.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
_HEADING: Final = re.compile(r"^## \[?(?P<name>[^\]\s]+)\]?(?: - (?P<date>.+))?$", re.MULTILINE)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
# Targets that are no addresses of their own and no place on the same page.
_RELATIVE: Final = re.compile(r"\]\((?![a-z]+:|#|/)([^)\s]+)\)")
# More than that GitHub refuses.
_LONGEST: Final = 125_000

EXAMPLES: Final = """\
examples:
  release_notes.py 0.2.0
  release_notes.py 0.2.0 --links https://github.com/acme/factbook/blob/v0.2.0 > notes.md

exit codes: 0 the notes were printed, 2 there are none that could be published
"""


class Mistake(Exception):
    """A reason why there are no notes, in a sentence."""


def notes(changelog: str, version: str, links: str = "") -> str:
    """The section of a version, without its heading.

    Raises Mistake where there is none, or it is empty, has no date, or is too long.
    """
    headings = [*_HEADING.finditer(changelog)]
    released = [one["name"] for one in headings if one["date"] and _DATE.fullmatch(one["date"])]
    at = next((n for n, one in enumerate(headings) if one["name"] == version), None)
    if at is None:
        known = ", ".join(released) or "none"
        raise Mistake(f"there is no section of {version}; released versions: {known}")
    if version not in released:
        raise Mistake(f"{version} is not released: its heading has no date, as 2026-12-01")
    end = headings[at + 1].start() if at + 1 < len(headings) else len(changelog)
    text = changelog[headings[at].end() : end].strip()
    if not re.sub(r"(?m)^#.*$", "", text).strip():
        raise Mistake(f"the section of {version} is empty")
    if links:
        text = _RELATIVE.sub(lambda match: f"]({links.rstrip('/')}/{match[1]})", text)
    if len(text) > _LONGEST:
        raise Mistake(f"the section of {version} has {len(text)} characters, above {_LONGEST}")
    return text


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    made = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("version", metavar="VERSION", help="a released version, such as 0.2.0")
    made.add_argument(
        "--changelog",
        metavar="FILE",
        type=Path,
        default=ROOT / "CHANGELOG.md",
        help="file in the form of Keep a Changelog; that of this checkout unless given",
    )
    made.add_argument(
        "--links", metavar="ADDRESS", default="", help="address that relative links are made into"
    )
    return made


def main() -> int:
    """Print the notes; 2 where there are none."""
    given = parser().parse_args()
    try:
        print(notes(given.changelog.read_text(), given.version, given.links))
    except (Mistake, OSError) as mistake:
        print(f"release_notes.py: {mistake}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
