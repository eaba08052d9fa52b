"""The system tests: all of them, or the smoke tests and those that a change needs."""

import datetime
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from tests.lanes.choice import SystemTests
from tests.lanes.repository import RECORD, GitError, Repository
from tests.lanes.tables import LONGEST, SMOKE

# Most tests wait for other processes: four at once keep two cores busy.
_WORKERS: Final = 4
_LISTED: Final = 30


def run(tests: Iterable[str] = ()) -> int:
    """Run system tests, all by default, the longest files first, and return the exit status.

    Only files with system tests are named: to collect all others takes each worker a minute.
    """
    chosen = list(tests) or SystemTests(Repository()).files
    ranks = {path: number for number, path in enumerate(LONGEST)}
    chosen.sort(key=lambda test: ranks.get(test.partition("::")[0], len(ranks)))
    command = [sys.executable, "-m", "pytest", "-m", "system", "--durations", "25"]
    command += ["-p", "tests.lanes.file_times"]
    command += ["-n", str(_WORKERS), "--dist", "loadfile", "--no-loadscope-reorder"]
    return subprocess.run([*command, *chosen], cwd=Repository().root, check=False).returncode


def run_full(commit: str) -> int:
    """Run all system tests. If they pass, record the commit that `make test` passed on too."""
    repository = Repository()
    recorded = is_clean_at(repository, commit)
    if recorded:
        print(f"If all tests pass, this commit is written to {RECORD}. Commit that file.")
    else:
        print(f"{RECORD} stays as it is: only a commit without other changes is recorded.")
    status = _stage("all system tests", SystemTests(repository).files)
    if status == 0 and recorded and is_clean_at(repository, commit):
        today = datetime.datetime.now(datetime.UTC).date()
        (repository.root / RECORD).write_text(f"{commit} {today}\n")
    return status


def run_change() -> int:
    """Run the smoke tests and the system tests that a change needs since the last full run.

    All at once: one after the other, the slowest of each would keep three of four workers idle.
    """
    repository = Repository()
    tests = SystemTests(repository)
    chosen = needed(repository, tests)
    if chosen == tests.files:
        return _stage("all system tests", chosen)
    smoke = [test for test in SMOKE if test.partition("::")[0] not in chosen]
    return _stage("smoke tests and system tests of this change", [*smoke, *chosen])


def _stage(name: str, tests: Sequence[str]) -> int:
    print(f"== {name}: {len(tests)} ==", flush=True)
    return run(tests)


def is_clean_at(repository: Repository, commit: str) -> bool:
    """Whether the checkout is this commit and nothing else."""
    try:
        head = repository.git("rev-parse", "HEAD").strip()
        return head == commit and not repository.uncommitted()
    except GitError:
        return False


def needed(repository: Repository, tests: SystemTests) -> list[str]:
    """Return the files of system tests that run, and print for each changed path why."""
    try:
        base = repository.last_full_run()
        changed = sorted(repository.changed_since(base))
    except GitError as error:
        print(f"All system tests run, as the last full run is unknown: {error}")
        return tests.files
    print(f"{len(changed)} files changed since the full run at {base[:12]}. Their system tests:")
    decisions = {path: tests.decision(path) for path in changed}
    reasons = [
        f"  {path}: {reason}"
        for path, (reason, files) in sorted(decisions.items(), key=lambda item: -len(item[1][1]))
        if files
    ]
    hidden = len(reasons[_LISTED:])
    without = len(changed) - len(reasons)
    print(*reasons[:_LISTED], *[f"  and {hidden} more"] * bool(hidden), sep="\n")
    print(f"  {without} others: none", flush=True)
    chosen = {test for _, files in decisions.values() for test in files}
    return [path for path in tests.files if path in chosen]
