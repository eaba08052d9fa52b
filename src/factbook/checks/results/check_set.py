"""The checks that are evaluated: those in effect and those pending, compiled and in order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
import structlog

from factbook.checks.definitions import definition_versions, publications
from factbook.checks.definitions.definition_versions import StoredCheck, check_store
from factbook.checks.results.level_store import Grading
from factbook.checks.rules import language
from factbook.checks.rules.check_definition import (
    Check,
    find_refused_check_patterns,
    parse_stored_check,
)
from factbook.checks.rules.checked_entity import CHECK_STEPS
from factbook.checks.rules.explanation import Explainer
from factbook.checks.rules.rule_evaluation import CompiledCheck, order_checks
from factbook.errors import FactbookError
from factbook.facts.entity_filter import EntityFilter, Matcher
from factbook.storage import Database, Transaction, counters

log = structlog.get_logger("factbook.checks")
# Operators whose answer changes as time passes, and those that look at the time of a collection.
_TIMED: Final = frozenset({"olderThan", "newerThan", "freshWithin", "before", "after"})
_FRESH: Final = frozenset({"freshWithin"})
# Steps that all checks with patterns and paths may take for one entity, half a second at most, and
# what each of them may take however many there are.
_ENTITY_STEPS: Final = 25_000_000
_LEAST_STEPS: Final = 25_000


class EvaluatedCheck(NamedTuple):
    """A compiled version of a check, and what decides when it is evaluated.

    `fresh` are the sources of which it reads the time of collection. A pending version has nobody
    who reads it yet: its states are neither counted nor told.
    """

    id: str
    slot: int
    compiled: CompiledCheck
    is_pending: bool
    is_timed: bool
    fresh: frozenset[str]


class CheckSelection:
    """Some of the checks of a set, in an order in which each comes after those that it reads."""

    def __init__(self, checks: Iterable[EvaluatedCheck]) -> None:
        self.checks = tuple(checks)
        every = [one.compiled for one in self.checks]
        self.sources = sorted(set[str]().union(*(one.sources for one in every)))
        self.reads_entity = any(one.reads_entity for one in every)
        self.has_pending = any(one.is_pending for one in self.checks)
        # Of those in effect, whose states are counted and told.
        self.in_effect = tuple((one.slot, one.id) for one in self.checks if not one.is_pending)
        # A few of many states are picked at once; the place 0, which is none, makes two of one.
        self._pick = itemgetter(0, 0, *(slot for slot, _ in self.in_effect))
        self._texts = [_json(one.check.applies_to) for one in every]
        # Many checks are about the same entities.
        self.filters: dict[bytes, EntityFilter | None] = {
            text: one.check.applies_to for text, one in zip(self._texts, every, strict=True)
        }
        self._by_matches: dict[tuple[bool, ...], MatchingChecks] = {}

    def states(self, states: bytearray) -> tuple[int, ...]:
        """The states of the checks in effect, after two that are none."""
        found: tuple[int, ...] = self._pick(states)
        return found

    def differing(self, old: bytearray, new: bytearray) -> list[tuple[int, str]]:
        """(slot, id) of the checks in effect whose states differ."""
        if self.states(old) == self.states(new):
            return []
        return [(slot, id_) for slot, id_ in self.in_effect if old[slot] != new[slot]]

    def matching(self, matcher: Matcher) -> "MatchingChecks":
        """The checks that are about an entity, and the others."""
        found = self.filters.values()
        return self.by_matches(tuple(matcher.lets_through(one) for one in found))

    def by_matches(self, matches: tuple[bool, ...]) -> "MatchingChecks":
        """The same, where `matches` tells for each of the filters if it matches the entity."""
        known = self._by_matches.get(matches)
        if known is None:
            holds = dict(zip(self.filters, matches, strict=True))
            chosen = [holds[text] for text in self._texts]
            pairs = list(zip(self.checks, chosen, strict=True))
            known = MatchingChecks(
                tuple(one for one, is_in in pairs if is_in),
                tuple(one for one, is_in in pairs if not is_in),
            )
            self._by_matches[matches] = known
        return known


class MatchingChecks(NamedTuple):
    """Checks that are about an entity, and those that are not."""

    inside: tuple[EvaluatedCheck, ...]
    outside: tuple[EvaluatedCheck, ...]


class CheckSet:
    """All checks of a revision.

    `counted` are the slots of the versions in effect, those too that this release cannot evaluate.
    It `is_empty` if no entity has states or levels.
    """

    def __init__(
        self,
        revision: int,
        checks: Iterable[EvaluatedCheck],
        counted: Sequence[int],
        *,
        is_needed: bool = False,
        in_effect_at: Mapping[str, int | None] = MappingProxyType({}),
    ) -> None:
        found = list(checks)
        # Since when each version is in effect, where that is known.
        self.in_effect_at = in_effect_at
        self._explainers: dict[str, Explainer] = {}
        self.is_empty = not found and not counted and not is_needed
        self.revision = revision
        published = [one for one in found if not one.is_pending]
        pending = [one for one in found if one.is_pending]
        self.checks = (*_order_evaluated(published), *_order_evaluated(pending))
        self.width = max((*(one.slot for one in found), *counted), default=0)
        self.counted = tuple(sorted(counted))
        self.by_slot: Mapping[int, EvaluatedCheck] = {one.slot: one for one in found}
        self.slots: Mapping[str, int] = {one.id: one.slot for one in published}
        # A pending version reads those that come into effect with it.
        self.slots_pending = {**self.slots, **{one.id: one.slot for one in pending}}
        self.sources = frozenset[str]().union(*(one.compiled.sources for one in found))
        self.fresh = frozenset[str]().union(*(one.fresh for one in found))
        costly = sum(one.compiled.is_costly for one in found)
        self.steps_per_check = max(_LEAST_STEPS, min(CHECK_STEPS, _ENTITY_STEPS // max(1, costly)))
        self.reads_owners = any(one.compiled.reads_owner for one in found)
        # Made where a transaction first grades entities (checks/results/incremental.py).
        self.grading: Grading | None = None
        self._pending: dict[frozenset[str], CheckSelection] = {}
        self._selections: dict[tuple[frozenset[str], frozenset[str]], CheckSelection] = {}

    def explainer(self, one: EvaluatedCheck) -> Explainer:
        """The explainer of results of a check in effect; made once for this revision."""
        found = self._explainers.get(one.id)
        if found is None:
            found = self._explainers[one.id] = Explainer(one.compiled.check, one.compiled)
        return found

    def sources_of(self, ids: Iterable[str] | None = None) -> set[str]:
        """The sources that these checks in effect read, or all, themselves or in others."""
        found, left = set[str](), set(self.slots if ids is None else self.slots.keys() & ids)
        seen = set[str]()
        while left:
            seen |= left
            read = [self.by_slot[self.slots[id_]].compiled for id_ in left]
            found = found.union(*(one.sources for one in read))
            left = set[str]().union(*(one.checks for one in read)) & self.slots.keys() - seen
        return found

    @cached_property
    def everything(self) -> CheckSelection:
        """Every check."""
        return CheckSelection(self.checks)

    def pending_of(self, ids: frozenset[str]) -> CheckSelection:
        """The pending versions of some checks."""
        found = self._pending.get(ids)
        if found is None:
            chosen = [one for one in self.checks if one.is_pending and one.id in ids]
            found = self._pending[ids] = CheckSelection(chosen)
        return found

    @cached_property
    def due(self) -> CheckSelection:
        """The checks whose states change as time passes, and those that read them.

        Those too that a write may have left for later because they were costly.
        """
        return self._with_readers(
            one for one in self.checks if one.is_timed or one.compiled.is_costly
        )

    def reading(self, sources: frozenset[str], confirmed: frozenset[str]) -> CheckSelection:
        """The checks that read these sources or the times of those `confirmed`, and their readers.

        A selection is kept, as the same sources are written again and again.
        """
        key = sources, confirmed
        found = self._selections.get(key)
        if found is None:
            found = self._selections[key] = self._with_readers(
                one
                for one in self.checks
                if one.compiled.sources & sources or one.fresh & confirmed
            )
        return found

    def _with_readers(self, checks: Iterable[EvaluatedCheck]) -> CheckSelection:
        chosen = {one.id for one in checks}
        size = -1
        while size < len(chosen):
            size = len(chosen)
            chosen |= {one.id for one in self.checks if one.compiled.checks & chosen}
        return CheckSelection(one for one in self.checks if one.id in chosen)


class CheckCache:
    """The compiled checks of the last revision that this process has seen of a database."""

    def __init__(self) -> None:
        self.known = CheckSet(-1, (), ())
        self._made: dict[tuple[int, bytes], EvaluatedCheck] = {}

    def current(self, transaction: Transaction) -> CheckSet:
        """The checks in effect and pending; the transaction holds the lock of the definitions."""
        revision = counters.value_within(transaction, publications.DEFINITIONS_REVISION)
        known = self.known
        if known.revision != revision:
            stored = check_store.all_within(transaction)
            # States are left to be cleared, or a scorecard has levels though its checks are drafts.
            is_needed = bool(
                publications.list_retired_slots(transaction)
            ) or definition_versions.are_levels_used(transaction)
            known = self._made_of(revision, stored, is_needed=is_needed)
        return known

    async def last_loaded(self, database: Database) -> CheckSet:
        """The same as of the last refresh of finds: for one of very many small answers."""
        revision = await counters.last_value(database, publications.DEFINITIONS_REVISION)
        known = self.known
        return known if known.revision == revision else await self.loaded(database)

    async def loaded(self, database: Database) -> CheckSet:
        """The checks in effect and pending, at least as new as this call."""
        revision = await check_store.revision(database)
        known = self.known
        if known.revision != revision:
            known = self._made_of(revision, await check_store.everything(database))
        return known

    def _made_of(
        self, revision: int, stored: Sequence[StoredCheck], *, is_needed: bool = True
    ) -> CheckSet:
        counted = [one.slot for one in stored if one.slot is not None]
        checks = self._compiled(stored)
        times = {one.id: one.in_effect_at for one in stored}
        self.known = found = CheckSet(
            revision, checks, counted, is_needed=is_needed, in_effect_at=times
        )
        return found

    def _compiled(self, stored: Iterable[StoredCheck]) -> Iterator[EvaluatedCheck]:
        before, self._made = self._made, {}
        for one in stored:
            for slot, document, is_pending in (
                (one.slot, one.published, False),
                (one.pending_slot, one.pending, True),
            ):
                if slot is None or document is None:
                    continue
                key = slot, _json([document, is_pending])
                found = before.get(key) or parse_evaluated_check(
                    document, slot, is_pending=is_pending
                )
                if found is not None:
                    self._made[key] = found
                    yield found


def parse_evaluated_check(
    document: object, slot: int, *, is_pending: bool
) -> EvaluatedCheck | None:
    """The check of a stored document; None if this release cannot read it."""
    try:
        check = parse_stored_check(document)
    except FactbookError as error:
        log.error("check.unusable", slot=slot, reason=error.message)
        return None
    for path, reason in find_refused_check_patterns(check):
        log.error("check.pattern-refused", check=check.id, path=path, reason=reason)
    return make_evaluated_check(check, slot, is_pending=is_pending)


def make_evaluated_check(check: Check, slot: int, *, is_pending: bool) -> EvaluatedCheck:
    """The check, ready to be evaluated."""
    rules = [check.rule, *([check.applicable_when] if check.applicable_when else [])]
    leaves = [leaf for rule in rules for _, leaf in language.walk_leaves(rule)]
    return EvaluatedCheck(
        check.id,
        slot,
        CompiledCheck(check, slot),
        is_pending,
        any(leaf.operator in _TIMED for leaf in leaves),
        frozenset(leaf.fact.source for leaf in leaves if leaf.operator in _FRESH),
    )


def _order_evaluated(checks: list[EvaluatedCheck]) -> list[EvaluatedCheck]:
    by_id = {one.id: one for one in checks}
    return [by_id[one.check.id] for one in order_checks(one.compiled for one in checks)]


_json = msgspec.json.Encoder(order="deterministic").encode
