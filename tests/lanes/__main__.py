"""The lanes of tests: what runs after a change. docs/decisions/tests.md says when each is used."""

import argparse
import time

from tests.lanes import quick, system
from tests.lanes.repository import GitError


def main() -> int:
    started = time.monotonic()
    parser = argparse.ArgumentParser(prog="python -m tests.lanes", description=__doc__)
    lanes = parser.add_subparsers(dest="lane", required=True)
    lanes.add_parser("quick", help="what is nearest to the change, on SQLite, in half a minute")
    lanes.add_parser("change", help="smoke tests, and the system tests that the change needs")
    full = lanes.add_parser("full", help="all system tests; records the commit if they pass")
    full.add_argument("commit", nargs="?", default="", help="the commit that make test passed on")
    some = lanes.add_parser("system", help="all system tests, or some")
    some.add_argument("tests", nargs="*", help="files or node ids")
    options = parser.parse_args()
    if options.lane == "quick":
        try:
            return quick.run(started)
        except GitError as error:
            parser.exit(1, f"Git can't say what changed: {error}\n")
    if options.lane == "change":
        return system.run_change()
    if options.lane == "full":
        return system.run_full(options.commit)
    return system.run(options.tests)


if __name__ == "__main__":
    raise SystemExit(main())
