"""Evaluation of a selection of checks for one entity: its next states and when they are due."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import structlog

from factbook.checks.maintenance.check_set import CheckSelection, CheckSet, EvaluatedCheck
from factbook.checks.maintenance.subjects import Subject
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import CheckOutcome, CompiledCheck
from factbook.checks.state import EXEMPT, FAIL, NONE, OUT, PASS, UNKNOWN
from factbook.errors import UnavailableError
from factbook.storage.database import RestartError

log = structlog.get_logger("factbook.checks")

# Without the flag of an exemption.
_STATE: Final = EXEMPT - 1
# What an exemption is from.
EXEMPTED: Final = frozenset({PASS, FAIL, UNKNOWN})


class SlotStates(Mapping[str, int]):
    """The states of an entity by the id of a check, as an evaluation reads them."""

    __slots__ = ("_slots", "_states")

    def __init__(self, slots: Mapping[str, int], states: bytearray) -> None:
        self._slots = slots
        self._states = states

    def __getitem__(self, check_id: str) -> int:
        slot = self._slots[check_id]
        # A slot beyond the end has no state.
        return self._states[slot] if slot < len(self._states) else NONE

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)


class ActiveExemptions(NamedTuple):
    """The checks from which an entity is exempt now; `due` is when that may change by itself."""

    checks: frozenset[str]
    due: int | None


NO_EXEMPTIONS: Final = ActiveExemptions(frozenset(), None)


class Evaluated(NamedTuple):
    """The next states of an entity; `due` is when the first of them may change without a write."""

    states: bytearray
    due: int | None


def evaluate(
    known: CheckSet,
    selection: CheckSelection,
    subject: Subject,
    before: bytearray,
    now: int,
    exempt: ActiveExemptions = NO_EXEMPTIONS,
    *,
    leaves_costly: bool = False,
) -> Evaluated:
    """Evaluate the selection for an entity with these states.

    A check that raises an exception is unknown, so that what was written is kept. With
    `leaves_costly` the costly checks keep their states, or are unknown, and are due at once.
    """
    states, due = bytearray(before), exempt.due
    inside = _inside(selection, subject, states)
    entity = subject.entity
    entity.most_steps = known.steps_per_check
    entity.states = SlotStates(known.slots, states)
    pending = SlotStates(known.slots_pending, states)
    exempted = exempt.checks
    for id_, slot, compiled, is_pending, _, _ in inside:
        if leaves_costly and compiled.is_costly:
            if states[slot] & _STATE in (NONE, OUT):
                states[slot] = UNKNOWN
            due = now
            continue
        if is_pending:
            entity.states = pending
        # As in `outcome`, which would be one call more for each of very many.
        try:
            if (rule := compiled.rule) is not None:
                state, later = rule(entity, now), None
            else:
                state, later = compiled.evaluate(entity, now)
        except (RestartError, UnavailableError):
            raise
        except Exception:
            state, later = UNKNOWN, None
            if not compiled.has_failed:
                compiled.has_failed = True
                log.exception("check.failed", check=id_, slot=slot)
        if exempted and id_ in exempted and state in EXEMPTED:
            state |= EXEMPT
        states[slot] = state
        if later is not None and (due is None or later < due):
            due = later
    return Evaluated(states, due)


def _inside(
    selection: CheckSelection, subject: Subject, states: bytearray
) -> Sequence[EvaluatedCheck]:
    """The checks that are about the entity; the states of the others are set."""
    if subject.matching is None:
        return [one for one in selection.checks if states[one.slot] & _STATE != OUT]
    for one in subject.matching.outside:
        states[one.slot] = OUT
    return subject.matching.inside


def outcome(
    check_id: str, compiled: CompiledCheck, entity: CheckedEntity, now: int
) -> CheckOutcome:
    """Evaluate one check for an entity that it applies to, unknown if it raises an exception."""
    try:
        return compiled.evaluate(entity, now)
    except (RestartError, UnavailableError):
        raise
    except Exception:
        if not compiled.has_failed:
            compiled.has_failed = True
            log.exception("check.failed", check=check_id, slot=compiled.slot)
        return CheckOutcome(UNKNOWN)
