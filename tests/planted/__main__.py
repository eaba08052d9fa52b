"""Plant faults in a copy of the repository, and see which tests catch them.

`tests/planted/faults.toml` lists changes that make the product wrong: 20 by hand in SQL,
permissions and migrations, 20 drawn at random. Each is planted in a temporary copy, never in this
folder, and the tests of its room run there until the first failure, those nearest to the changed
module first. Faults that their rooms miss are planted together for one run of the whole suite;
each test that fails then runs again with each of these faults alone.

A test that also fails without any fault catches nothing.

`tests/planted/results.toml` records where each fault was caught. A change of the tests may lose
none of that:

    python -m tests.planted --compare                 # every recorded fault; exits with 1 if one
                                                      # that was caught no longer is
    python -m tests.planted --compare --only ID       # the same of one fault
    python -m tests.planted --list                    # ids, kinds, paths and recorded results

Which test catches a fault doesn't matter, so tests can be merged, moved and renamed. To add a
fault, write it to faults.toml and run:

    python -m tests.planted --record                  # adds results of faults that have none
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from queue import SimpleQueue
from threading import Lock
from typing import Final, Literal, NamedTuple, get_args

from tests.planted import drawing, faults
from tests.planted.faults import UNTRIED, Fault, Result
from tests.planted.nearest import files_of
from tests.planted.working_copy import NO_START, WorkingCopy

# With more failures than this, each half of the group gets a run of its own.
_MOST_FAILURES: Final = 400
_SUITE: Final = "tests"


Part = Literal["nearest", "rest"]
Keep = Callable[["Outcome"], None]

_PARTS: Final[tuple[Part, ...]] = get_args(Part)


class Outcome(NamedTuple):
    """A fault, and its result in this run."""

    fault: Fault
    result: Result


class Rig:
    """Copies in which faults are tried, as many at a time as there are copies.

    `keep` gets each result as soon as there is one.
    """

    def __init__(
        self, copies: Sequence[WorkingCopy], known: Mapping[str, Result], keep: Keep
    ) -> None:
        self._copies = copies
        self._known = known
        self._keep = keep
        self._free = SimpleQueue[WorkingCopy]()
        for copy in copies:
            self._free.put(copy)
        # Tests that fail without a fault.
        self._broken: set[str] = set()

    def in_rooms(self, chosen: Sequence[Fault]) -> list[Outcome]:
        """The results of faults by the tests of their rooms, in the order of the faults.

        The tests nearest to each fault come first, and large rooms last.
        """
        outcomes = {fault.id: Outcome(fault, UNTRIED) for fault in chosen}
        with ThreadPoolExecutor(len(self._copies)) as pool:
            for part in _PARTS:
                missed = [each.fault for each in outcomes.values() if not each.result.is_caught]
                tried = pool.map(partial(self._in_room, part=part), missed)
                outcomes |= {each.fault.id: each for each in tried}
        return list(outcomes.values())

    def in_suite(self, missed: Sequence[Fault], workers: int) -> list[Outcome]:
        """The results of faults that their rooms miss, by the whole suite."""
        if not missed:
            return []
        names = ", ".join(fault.id for fault in missed)
        _say(f"the whole suite, with {names}")
        copy = self._copies[0]
        with copy.planted(missed):
            failed = copy.failures([_SUITE], stop=False, workers=workers)
        if len(failed) > _MOST_FAILURES and len(missed) > 1:
            half = len(missed) // 2
            return [*self.in_suite(missed[:half], workers), *self.in_suite(missed[half:], workers)]
        _say(f"{len(failed)} tests failed")
        if failed == [NO_START]:
            # Any fault of a group may be the cause.
            if len(missed) == 1:
                return [self._outcome(missed[0], Result("suite", NO_START))]
            return [each for fault in missed for each in self.in_suite([fault], workers)]
        failed = sorted(set(failed) - self._fail_anyway(copy, failed))
        return [self._alone(fault, failed) for fault in missed]

    def _alone(self, fault: Fault, failed: Sequence[str]) -> Outcome:
        """The result of one fault by the tests that failed with several."""
        if not failed:
            return self._outcome(fault, Result("nowhere"))
        copy = self._copies[0]
        with copy.planted([fault]):
            tests = copy.failures(_files(failed), listed=failed)
        return self._outcome(fault, Result("suite", tests[0]) if tests else Result("nowhere"))

    def _in_room(self, fault: Fault, part: Part) -> Outcome:
        """The result of a fault by the nearest tests, or by the rest of the room."""
        copy = self._free.get()
        try:
            started = time.monotonic()
            test = self._catching(copy, fault, part)
            missed = UNTRIED if part == "nearest" else Result("missed")
            result = Result("room", test) if test else missed
            return self._outcome(fault, result, time.monotonic() - started)
        finally:
            self._free.put(copy)

    def _catching(self, copy: WorkingCopy, fault: Fault, part: Part) -> str | None:
        """The first test that fails with the fault and passes without it."""
        caught_by = self._known.get(fault.id, UNTRIED).test
        files = files_of(copy.folder, fault, caught_by)
        chosen = files.nearest if part == "nearest" else files.rest
        first = caught_by.partition("[")[0]
        while chosen:
            with copy.planted([fault]):
                tests = copy.failures(chosen, first=first, without=sorted(self._broken))
            if not tests or tests == [NO_START] or not self._fail_anyway(copy, tests):
                return tests[0] if tests else None
            self._broken.update(tests)
            _say(f"fails without a fault: {tests[0]}")
        return None

    def _fail_anyway(self, copy: WorkingCopy, tests: Sequence[str]) -> set[str]:
        """Those of the tests that fail without a fault."""
        return set(copy.failures(_files(tests), listed=tests, stop=False)) if tests else set()

    def _outcome(self, fault: Fault, result: Result, seconds: float | None = None) -> Outcome:
        """The outcome, which is printed and kept."""
        duration = "" if seconds is None else f"  ({seconds:.0f} s)"
        _say(f"{_line(fault, result)}{duration}")
        outcome = Outcome(fault, result)
        self._keep(outcome)
        return outcome


def main() -> int:
    """Run the command line; 1 if a fault that was caught no longer is."""
    options = _options()
    if options.draw:
        sys.stdout.writelines(map(faults.row, drawing.draw(options.draw, options.seed)))
        return 0
    every, known = faults.faults(), faults.results()
    chosen = [every[fault_id] for fault_id in options.only or every]
    if options.list:
        for fault in chosen:
            _say(_line(fault, known.get(fault.id, UNTRIED)))
        return 0
    if options.compare:
        chosen = [each for each in chosen if known.get(each.id, UNTRIED).is_caught]
    elif options.record and not options.only:
        chosen = [each for each in chosen if known.get(each.id, UNTRIED).is_open]

    lock = Lock()

    def keep(outcome: Outcome) -> None:
        if options.record:
            with lock:
                known[outcome.fault.id] = outcome.result
                faults.save(known)

    outcomes = _tried(chosen, known, keep, options)
    lost = [each.fault.id for each in outcomes if not each.result.is_caught]
    _say(f"{len(outcomes) - len(lost)} of {len(outcomes)} faults caught")
    if lost:
        _say(f"not caught: {', '.join(lost)}")
    return 1 if lost and options.compare else 0


def _tried(
    chosen: Sequence[Fault],
    known: Mapping[str, Result],
    keep: Keep,
    options: argparse.Namespace,
) -> list[Outcome]:
    if not chosen:
        return []
    with ExitStack() as stack:
        count = min(options.jobs, len(chosen))
        copies = [stack.enter_context(WorkingCopy.create()) for _ in range(count)]
        rig = Rig(copies, known, keep)
        # The room of a fault that is recorded as missed has had its try.
        tried = [fault for fault in chosen if not (options.record and _is_missed(known, fault))]
        outcomes = {each.fault.id: each for each in rig.in_rooms(tried)}
        missed = [
            fault
            for fault in chosen
            if fault.id not in outcomes or not outcomes[fault.id].result.is_caught
        ]
        if not options.rooms:
            outcomes |= {each.fault.id: each for each in rig.in_suite(missed, options.workers)}
        return [outcomes[fault.id] for fault in chosen if fault.id in outcomes]


def _is_missed(known: Mapping[str, Result], fault: Fault) -> bool:
    return known.get(fault.id, UNTRIED).caught == "missed"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.planted",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", nargs="+", metavar="ID", choices=list(faults.faults()), help="these faults alone"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--compare", action="store_true", help="try what was caught; exit with 1 if it no longer is"
    )
    action.add_argument(
        "--record",
        action="store_true",
        help="try faults without a result, or those of --only, and write their results",
    )
    action.add_argument("--list", action="store_true", help="try nothing, list the faults")
    action.add_argument(
        "--draw", type=int, default=0, metavar="N", help="print N faults drawn at random, as TOML"
    )
    parser.add_argument("--seed", type=int, default=33, help="of the drawing (%(default)s)")
    parser.add_argument(
        "--rooms", action="store_true", help="don't run the whole suite for faults that rooms miss"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="faults that are tried at once (%(default)s)"
    )
    parser.add_argument(
        "--workers", type=int, default=3, help="processes of the whole suite (%(default)s)"
    )
    return parser.parse_args()


def _line(fault: Fault, result: Result) -> str:
    return f"{fault.id:36} {fault.kind:10} {result.caught:8} {result.test or fault.path}"


def _files(tests: Iterable[str]) -> list[str]:
    return sorted({test.partition("::")[0] for test in tests})


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
