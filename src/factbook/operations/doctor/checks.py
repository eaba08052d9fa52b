"""Published checks and data sources: those that cannot be evaluated, circles, and old patterns."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from factbook import user_patterns
from factbook.auth.permissions import SCORECARD_WRITE
from factbook.checks.definitions import definition_writes, scorecard
from factbook.checks.definitions.definition_versions import (
    StoredCheck,
    StoredScorecard,
    check_store,
    scorecard_store,
)
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import (
    Check,
    find_refused_check_patterns,
    parse_stored_check,
)
from factbook.checks.rules.language import PATTERN_OPERATORS
from factbook.datasources.source_store import StoredSource, source_store
from factbook.errors import FactbookError, InputError
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.storage import Database, migrations

TOPIC: Final = "checks"
# Since then the tables of checks and data sources have the columns that are read here.
_OLDEST_SCHEMA: Final = 41
_MOST_NAMED: Final = 10


async def checks(database: Database) -> AsyncIterator[Finding]:
    """Findings on checks whose results are not to be relied on."""
    stored = await check_store.everything(database)
    published = {one.id: one.published for one in stored if one.published is not None}
    cards = await scorecard_store.everything(database)
    found = [
        *_unusable(published),
        *_circles(published),
        *_patterns(stored),
        *_idle_rules(stored, cards),
    ]
    for finding in found:
        yield finding
    for finding in source_patterns(await source_store.everything(database)):
        yield finding
    if published and not any(one.state == "problem" for one in found):
        yield ok(TOPIC, f"All {len(published)} published checks can be evaluated.")


def _unusable(published: Mapping[str, dict[str, Any]]) -> Iterator[Finding]:
    for id_, document in published.items():
        try:
            parse_stored_check(document)
        except FactbookError as error:
            what = f"This release cannot evaluate {id_}: {error.message}"
            yield problem(TOPIC, what, "Publish it anew, or start the release that it is of.")


async def patterns_after_upgrade(database: Database) -> AsyncIterator[Finding]:
    """Patterns on a schema from before the upgrade, unless that is too old to tell."""
    if await migrations.version(database) < _OLDEST_SCHEMA:
        what = "This schema is too old to list the patterns that this release refuses."
        yield warning(TOPIC, what, "Run `factbook doctor` again after the upgrade.")
        return
    for finding in _patterns(await check_store.everything(database)):
        yield finding
    for finding in source_patterns(await source_store.everything(database)):
        yield finding


def _patterns(stored: Iterable[StoredCheck]) -> Iterator[Finding]:
    """Patterns that this release refuses, or reads differently than releases before it did."""
    for one in stored:
        try:
            check = parse_stored_check(one.published or one.draft)
        except FactbookError:
            continue
        owner = f", which belongs to {check.owner}," if check.owner else ""
        for path, reason in find_refused_check_patterns(check):
            yield problem(
                TOPIC,
                f"The check {one.id}{owner} is unknown in this release: the pattern at {path} "
                f"{reason}.",
                "Change the pattern and publish the check.",
            )
        for path, text in _readable_patterns(check):
            for difference in user_patterns.explain_differences(text):
                yield warning(
                    TOPIC,
                    f"The check {one.id}{owner} reads text differently: in the pattern at {path} "
                    f"{difference}.",
                    "If its texts have other characters, change the pattern and publish the check.",
                )


def _readable_patterns(check: Check) -> Iterator[tuple[str, str]]:
    for path, rule in check.rules():
        for where, leaf in language.walk_leaves(rule, path):
            if leaf.operator in PATTERN_OPERATORS and not any(language.find_refused_patterns(leaf)):
                yield f"{where}.value", leaf.value


def source_patterns(stored: Iterable[StoredSource]) -> Iterator[Finding]:
    """The same for the patterns by which data sources extract facts."""
    for one in stored:
        document = one.published or one.draft or {}
        schema = document.get("schema")
        for name, fact in schema.items() if isinstance(schema, dict) else ():
            extract = fact.get("extract") if isinstance(fact, dict) else None
            text = extract.get("regex") if isinstance(extract, dict) else None
            if not isinstance(text, str):
                continue
            where = f"schema.{name}.extract"
            try:
                user_patterns.compile_extraction(text)
            except InputError as error:
                yield problem(
                    "data sources",
                    f"{one.id} is not collected by this release: the pattern at {where} "
                    f"{error.message}.",
                    "Change the pattern and publish the data source.",
                )
                continue
            for difference in user_patterns.explain_differences(text):
                yield warning(
                    "data sources",
                    f"{one.id} reads text differently: in the pattern at {where} {difference}.",
                    "If its documents have other characters, change the pattern.",
                )


def _idle_rules(
    stored: Sequence[StoredCheck], cards: Sequence[StoredScorecard]
) -> Iterator[Finding]:
    """A warning for each scorecard whose exemption rules do not count for some of its checks."""
    for card in cards:
        document = card.newest or {}
        named = scorecard.list_named_checks(document) if document.get("exemptions") else set()
        idle = [
            one.id
            for one in stored
            if one.id in named and not definition_writes.do_rules_count(card, one)
        ]
        if idle:
            shown = ", ".join(idle[:_MOST_NAMED]) + (", …" if len(idle) > _MOST_NAMED else "")
            what = f"The exemption rules of scorecard {card.id} have no effect on {shown}."
            yield warning(
                TOPIC,
                what,
                "Its owner does not own these checks. To make the rules count, publish the "
                f"scorecard again with the permission {SCORECARD_WRITE}.",
            )


def _circles(published: Mapping[str, dict[str, Any]]) -> Iterator[Finding]:
    """A problem for each circle, which earlier releases let through."""
    reads = {
        id_: check_definition.list_referenced_checks(document)
        for id_, document in published.items()
    }
    told = set[frozenset[str]]()
    for id_, others in reads.items():
        for other in others:
            circle = check_definition.find_way_back(id_, other, lambda one: reads.get(one, ()))
            if not circle or frozenset(circle) in told:
                continue
            told.add(frozenset(circle))
            what = f"A check reads itself: {' → '.join(circle)}."
            advice = "The results mean nothing: publish one of them that does not read the next."
            yield problem(TOPIC, what, advice)
