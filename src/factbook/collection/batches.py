"""Collection of one batch: each target is requested, then stored, counted or retried."""

import asyncio
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import NamedTuple

import structlog

from factbook.catalog.store import collectable
from factbook.clock import MINUTE, SECOND
from factbook.collection.run_start import Targets, targets_of, work_of
from factbook.datasources.memory import DatabaseMemory
from factbook.errors import FactbookError
from factbook.facts import entity_filter, store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.integrations.integration import Collected, Integration
from factbook.outbound.cache import AnswerCache, Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.limits import ClientHealth
from factbook.outbound.outcomes import Missing, Outcome
from factbook.scheduling import run_queue, runs
from factbook.scheduling.run_queue import Batch, BatchFigures
from factbook.scheduling.runs import EndedRun, GivenUpBatch, RunGap
from factbook.storage import Transaction

log = structlog.get_logger("factbook.collecting")

# A batch that was begun so often without an end is given up.
MOST_ATTEMPTS = 6
# The client has repeated its calls already.
_MOST_FAILURES = 3
# A batch of 20 comes to single targets with its third attempt, one of 10,000 with its sixth.
_PARTS = 8
_LONGEST = 5 * MINUTE
_FIRST_PAUSE = 30 * SECOND
_LONGEST_PAUSE = 10 * MINUTE


class Result(NamedTuple):
    """Result of a batch: facts to store, remaining work with its time and attempts, and figures.

    `covered`, `failed`, `incomplete` and `skipped` count entities; `gaps` are the missing facts.
    """

    observations: list[Observation]
    covered: int
    failed: int
    incomplete: int
    skipped: int
    gaps: Counter[RunGap]
    left: list[str]
    next_at: int
    pause_until: int | None = None
    attempts: int | None = None


async def collect(
    integration: Integration,
    batch: Batch,
    client: HttpClient,
    memory: Memory,
    now: int,
    cache: AnswerCache,
) -> Result:
    """Collect the targets of a batch. Raises nothing: errors are part of the result.

    Calls with responses cached by an earlier attempt are not repeated, until an attempt fails
    without a failed call: then the responses themselves were unusable.
    """
    entities = targets_of(batch.work)
    targets = [target for target in entities if entities[target] or len(cache)]
    if reason := _given_up(batch, now):
        return _result(dict.fromkeys(entities, _failed(reason)), entities)
    answered, failures = len(cache), cache.failures
    seconds = min(_LONGEST, batch.deadline - now) / SECOND
    try:
        async with asyncio.timeout(seconds):
            found = await integration.collect(targets, client.caching(cache), memory, cache.now)
    except TimeoutError:
        reason = Missing(Outcome.TRANSIENT, f"no answer within {seconds:.0f} s")
        return _settle(batch, dict.fromkeys(entities, _failed(reason)), entities, client, now)
    except FactbookError as error:
        reason = Missing(Outcome.TRANSIENT, error.message)
        return _settle(batch, dict.fromkeys(entities, _failed(reason)), entities, client, now)
    except Exception as error:
        if batch.attempts == 1:
            log.error("collection.failed", source=integration.source.id, exc_info=error)
        return _split(batch, entities, client, now)
    unanswered = _failed(Missing(Outcome.TRANSIENT, "the answer leaves it out"))
    answers = {target: found.get(target, unanswered) for target in targets}
    advanced = 0 < answered < len(cache)
    if cache.failures == failures:
        cache.clear()
    return _settle(batch, answers, entities, client, now, advanced=advanced)


def finish(
    transaction: Transaction,
    *,
    integration: Integration,
    batch: Batch,
    result: Result,
    figures: BatchFigures,
    memory: DatabaseMemory,
    expires_at: int | None,
    now: int,
) -> EndedRun | None:
    """Store the facts of the batch and remove it from its queue, in one transaction."""
    ended = run_queue.finish_batch(
        transaction,
        batch,
        figures,
        now,
        left=result.left,
        next_at=result.next_at,
        attempts=result.attempts,
    )
    if batch.attempts > MOST_ATTEMPTS:
        runs.record_given_up_batch(
            transaction, GivenUpBatch(*batch[:3], batch.work, batch.attempts - 1, now)
        )
    if result.pause_until is not None:
        run_queue.pause_queue(transaction, batch.queue, result.pause_until)
    if expires_at is not None:
        runs.record_credential_expiry(transaction, batch.source_id, expires_at)
    memory.flush(transaction)
    there = _still_there(transaction, integration.source, result.observations)
    observations = [one for one in result.observations if one.entity_id in there]
    # In one order everywhere, or two that write the same rows could wait for each other.
    observations.sort(key=lambda one: one.entity_id)
    store.record_facts(transaction, integration.source, observations, now)
    return ended


def _still_there(
    transaction: Transaction, source: DataSource, observations: Iterable[Observation]
) -> set[int]:
    """The entities that are still in the catalog, and still of the owner of the source.

    One that was forgotten meanwhile would be stored for ever.
    """
    ids = [one.entity_id for one in observations]
    if source.ownership is None:
        return collectable.existing(transaction, ids)
    return collectable.meeting(transaction, entity_filter.filter_condition(source.ownership), ids)


def key(batch: Batch) -> Hashable:
    """The identity of the batch across its attempts, which have different numbers."""
    return batch.run_id, tuple(targets_of(batch.work))


def _given_up(batch: Batch, now: int) -> Missing | None:
    """The reason to give the batch up, if there is one."""
    if now >= batch.deadline:
        if batch.paused:
            return Missing(Outcome.RATE_LIMITED, "until after the end of the run")
        return Missing(Outcome.TRANSIENT, "the run took longer than its timeout")
    if batch.attempts > MOST_ATTEMPTS:
        return Missing(Outcome.TRANSIENT, "the collection ended without a result time and again")
    return None


def _failed(reason: Missing) -> Collected:
    return Collected(missing={"": reason})


def _split(batch: Batch, entities: Targets, client: HttpClient, now: int) -> Result:
    """Split the batch, so that one target that cannot be processed does not block the others."""
    targets = list(entities)
    if len(targets) == 1 or batch.attempts >= MOST_ATTEMPTS:
        reason = Missing(Outcome.TRANSIENT, "the collection failed; the log has more")
        return _settle(batch, dict.fromkeys(entities, _failed(reason)), entities, client, now)
    size = -(-len(targets) // _PARTS)
    parts = [targets[start : start + size] for start in range(0, len(targets), size)]
    return _result({}, entities, [work_of(part, entities) for part in parts], now)


def _settle(
    batch: Batch,
    answers: dict[str, Collected],
    entities: Targets,
    client: HttpClient,
    now: int,
    *,
    advanced: bool = False,
) -> Result:
    """The facts to store, and the targets to retry in this run.

    The known facts of these targets are stored at once, and their other values become stale. They
    are counted with their last attempt. If an attempt that `advanced`, getting further than an
    earlier one, reached a rate limit, it does not count: such attempts continue until the end of
    the run.
    """
    limited = any(_has(Outcome.RATE_LIMITED, answer) for answer in answers.values())
    until = _resumes_at(client.health, batch, now) if limited else None
    attempts = 0 if limited and advanced else batch.attempts
    next_at = until or now + _pause(batch.attempts)
    most = MOST_ATTEMPTS if limited else _MOST_FAILURES
    again = [target for target in answers if entities[target] and _may_improve(answers[target])]
    if not again or attempts >= most or next_at >= batch.deadline:
        return _result(answers, entities, pause_until=until)
    settled = {target: answers[target] for target in answers if target not in again}
    result = _result(settled, entities, [_again(again, entities)], next_at, until)
    partly = {target: answers[target] for target in again}
    observations = result.observations + _observations(partly, entities)
    return result._replace(observations=observations, attempts=attempts)


def _again(targets: list[str], entities: Targets) -> str:
    """The targets as work, with the rest of the batch as context, for which no entity waits.

    Requests about several targets stay the same, so their responses are found in the cache kept for
    the next attempt.
    """
    waiting = {target: entities[target] for target in targets}
    return work_of(entities, {target: waiting.get(target, []) for target in entities})


def _observations(answers: dict[str, Collected], entities: Targets) -> list[Observation]:
    return [
        Observation(id_, answer.values, answer.reasons, answer.passing)
        for target, answer in answers.items()
        for id_ in entities[target]
    ]


def _result(
    answers: dict[str, Collected],
    entities: Targets,
    left: list[str] | None = None,
    next_at: int = 0,
    pause_until: int | None = None,
) -> Result:
    observations = _observations(answers, entities)
    nothing = {target: one for target, one in answers.items() if one.missing and not one.values}
    skipped = _count(entities, (t for t, one in nothing.items() if _is_skipped(one)))
    failed = _count(entities, nothing) - skipped
    incomplete = _count(entities, (t for t, one in answers.items() if one.values and one.passing))
    gaps = Counter[RunGap]()
    for target, answer in answers.items():
        for place, missing in answer.missing.items():
            gaps[_gap(place, missing)] += len(entities[target])
    covered = len(observations) - failed - skipped
    counts = covered, failed, incomplete, skipped
    return Result(observations, *counts, +gaps, left or [], next_at, pause_until)


def _is_skipped(answer: Collected) -> bool:
    """Return true if the entity turned out not to identify a target."""
    return all(one.outcome is Outcome.NO_ANNOTATION for one in answer.missing.values())


def _gap(place: str, missing: Missing) -> RunGap:
    if missing.outcome is Outcome.NO_ANNOTATION:
        return RunGap(place, missing.reason, "skipped")
    return RunGap(place, missing.reason, "passing" if missing.passing else "final")


def _count(entities: Targets, targets: Iterable[str]) -> int:
    return sum(len(entities[target]) for target in targets)


def _may_improve(answer: Collected) -> bool:
    """Return true if another attempt may bring more facts of a target."""
    return any(missing.retried for missing in answer.missing.values())


def _has(outcome: Outcome, answer: Collected) -> bool:
    return any(missing.outcome is outcome for missing in answer.missing.values())


def _pause(attempts: int) -> int:
    return int(min(_FIRST_PAUSE * 2 ** (attempts - 1), _LONGEST_PAUSE))


def _resumes_at(health: ClientHealth, batch: Batch, now: int) -> int:
    """The time at which the rate limit ends; an increasing guess if the client does not know."""
    known = health.resumes_at
    return known if known and known > now else now + 2 * _pause(batch.attempts)
