"""Print the manifest: `python -m tests.spec` shows each requirement and the tests that show it."""

import sys
from collections.abc import Iterator, Mapping

from .marks import marks_in
from .requirements import TOPICS, Requirement


def main() -> None:
    """Write the table to standard output."""
    sys.stdout.writelines(f"{line}\n" for line in table(TOPICS, tests_by_id()))


def tests_by_id() -> dict[str, list[str]]:
    """The tests that name each id, each test once."""
    tests: dict[str, dict[str, None]] = {}
    for mark in marks_in():
        if mark.requirement_id is not None:
            tests.setdefault(mark.requirement_id, {})[mark.test] = None
    return {requirement_id: list(names) for requirement_id, names in tests.items()}


def table(
    topics: Mapping[str, Mapping[str, Requirement]], tests: Mapping[str, list[str]]
) -> Iterator[str]:
    """The lines: a heading for each topic, then id, source and tests, one test a line."""
    requirements = [pair for topic in topics.values() for pair in topic.items()]
    id_width = max(len(requirement_id) for requirement_id, _ in requirements)
    source_width = max(len(requirement.source) for _, requirement in requirements)
    for topic, entries in topics.items():
        yield f"# {topic}"
        for requirement_id, requirement in entries.items():
            first, *others = shown_by(requirement, tests.get(requirement_id, []))
            yield f"{requirement_id:{id_width}}  {requirement.source:{source_width}}  {first}"
            yield from (f"{'':{id_width + source_width + 4}}{other}" for other in others)
        yield ""
    later = sum(requirement.later is not None for _, requirement in requirements)
    shown = sum(requirement_id in tests for requirement_id, _ in requirements)
    yield f"{len(requirements)} requirements: {shown} shown by tests, {later} later"


def shown_by(requirement: Requirement, tests: list[str]) -> list[str]:
    """What the last column says: the tests, or why there are none."""
    if tests:
        return tests
    return ["no test" if requirement.later is None else f"later: {requirement.later}"]


if __name__ == "__main__":
    main()
