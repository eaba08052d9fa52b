#!/usr/bin/env python3
"""Build the documentation of a version into the branch gh-pages of this checkout, and push nothing.

The branch has a folder for each version, and `versions.json`, which the site's menu of versions
reads. The newest release is `latest` too, where readers begin; before the first one, main is.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
BRANCH: Final = "gh-pages"
_RELEASE: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")

EXAMPLES: Final = """\
examples:
  versioned_site.py main     what is not released yet
  versioned_site.py 0.2.0    a release
"""


def order(version: str) -> tuple[int, ...] | None:
    """Key to sort a release by; None for what is none."""
    match = _RELEASE.fullmatch(version)
    return tuple(map(int, match.groups())) if match else None


def is_newest(version: str, tags: list[str]) -> bool:
    """Tell whether a version is a release that no tag is newer than."""
    mine = order(version)
    return mine is not None and all(mine >= (order(tag) or ()) for tag in tags)


def _run(*words: str) -> str:
    """Output of a program, run with a committer, whom a machine that only builds does not have.

    Raises CalledProcessError where it fails.
    """
    surroundings = os.environ | {
        # mike looks for mkdocs there.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "Factbook documentation",
        "GIT_CONFIG_KEY_1": "user.email",
        "GIT_CONFIG_VALUE_1": "docs@factbook.invalid",
    }
    done = subprocess.run(
        words, cwd=ROOT, env=surroundings, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def build(version: str) -> None:
    """Add a version to the branch, in place of what was there of it.

    Raises CalledProcessError where the documentation cannot be built.
    """
    mike = str(Path(sys.executable).with_name("mike"))
    tags = [tag for tag in _run("git", "tag", "--list").split() if order(tag)]
    newest = is_newest(version, tags)
    names = [version, "latest"] if newest else [version]
    _run(mike, "deploy", "--branch", BRANCH, "--update-aliases", *names)
    start = "latest" if newest else version
    # A later main leaves the start where the releases put it.
    if newest or not tags:
        _run(mike, "set-default", "--branch", BRANCH, "--allow-empty", start)
    print(f"{BRANCH} has {version}{' as latest' if newest else ''}.")


def main() -> int:
    """Build what was asked for; 1 where that fails, 2 where it makes no sense."""
    made = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("version", metavar="VERSION", help="`main`, or a release such as 0.2.0")
    version = made.parse_args().version
    if version != "main" and (version.startswith("v") or order(version) is None):
        made.error(f"{version} is neither main nor a version such as 0.2.0")
    try:
        build(version)
    except subprocess.CalledProcessError as error:
        print(f"versioned_site.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
