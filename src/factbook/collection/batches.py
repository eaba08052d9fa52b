"""Collection of one batch: each target is requested, then stored, counted or retried."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import structlog

from factbook.clock import MINUTE, SECOND
from factbook.collection.run_plan import Targets, targets_of, work_of
from factbook.errors import FactbookError
from factbook.facts.store import Observation
from factbook.integrations.integration import Collected, Integration
from factbook.outbound import Health, HttpClient, Memory
from factbook.outbound.outcomes import Missing, Outcome
from factbook.scheduling.run_queue import Batch

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
    error: str | None
    left: list[str]
    next_at: int
    pause_until: int | None = None


async def collect(
    integration: Integration, batch: Batch, client: HttpClient, memory: Memory, now: int
) -> Result:
    """Collect the targets of a batch. Raises nothing: errors are part of the result.

    Calls with responses cached by an earlier attempt are not repeated, until an attempt fails
    without a failed call: then the responses themselves were unusable.
    """
    entities = targets_of(batch.work)
    if reason := _given_up(batch, now):
        return _result(dict.fromkeys(entities, _failed(reason)), entities)
    seconds = min(_LONGEST, batch.deadline - now) / SECOND
    try:
        async with asyncio.timeout(seconds):
            found = await integration.collect(list(entities), client, memory, now)
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
    answers = {target: found.get(target, unanswered) for target in entities}
    return _settle(batch, answers, entities, client, now)


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
    batch: Batch, answers: dict[str, Collected], entities: Targets, client: HttpClient, now: int
) -> Result:
    """What is to be stored, and what of it is worth another attempt in this run."""
    limited = any(_has(Outcome.RATE_LIMITED, answer) for answer in answers.values())
    until = _resumes_at(client.health, batch, now) if limited else None
    next_at = until or now + _pause(batch.attempts)
    most = MOST_ATTEMPTS if limited else _MOST_FAILURES
    if batch.attempts >= most or next_at >= batch.deadline:
        return _result(answers, entities, pause_until=until)
    again = [target for target, answer in answers.items() if _said_nothing(answer)]
    said = {target: answers[target] for target in answers if not _said_nothing(answers[target])}
    left = [work_of(again, entities)] if again else []
    return _result(said, entities, left, next_at, until)


def _result(
    answers: dict[str, Collected],
    entities: Targets,
    left: list[str] | None = None,
    next_at: int = 0,
    pause_until: int | None = None,
) -> Result:
    observations = [
        Observation(id_, answer.values, answer.reasons, answer.passing)
        for target, answer in answers.items()
        for id_ in entities[target]
    ]
    failures = [
        target for target, answer in answers.items() if answer.missing and not answer.values
    ]
    failed = sum(len(entities[target]) for target in failures)
    error = _commonest(answers[target] for target in failures)
    covered = len(observations) - failed
    return Result(observations, covered, failed, error, left or [], next_at, pause_until)


def _commonest(failures: Iterable[Collected]) -> str | None:
    reasons = Counter(next(iter(failure.reasons.values())) for failure in failures)
    return reasons.most_common(1)[0][0] if reasons else None


def _said_nothing(answer: Collected) -> bool:
    """Whether the vendor could not be asked about any of it."""
    if answer.values or not answer.missing:
        return False
    return all(missing.passing for missing in answer.missing.values())


def _has(outcome: Outcome, answer: Collected) -> bool:
    return any(missing.outcome is outcome for missing in answer.missing.values())


def _pause(attempts: int) -> int:
    return int(min(_FIRST_PAUSE * 2 ** (attempts - 1), _LONGEST_PAUSE))


def _resumes_at(health: Health, batch: Batch, now: int) -> int:
    """When the limit that was met ends; a guess that grows where the client does not know."""
    known = health.resumes_at
    return known if known and known > now else now + 2 * _pause(batch.attempts)
