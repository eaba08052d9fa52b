"""Content of the database: checks, accounts, rights of groups and importers."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from factbook import user_patterns
from factbook.auth import group_roles, users
from factbook.auth.permissions import SCORECARD_WRITE
from factbook.catalog import people_trust
from factbook.catalog.people_trust import PeopleTrust
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
from factbook.clock import ago
from factbook.datasources.stores import StoredSource, source_store
from factbook.errors import ConfigurationError, FactbookError, InputError
from factbook.importers.registry import ImporterRegistry, ImporterStatus, list_importer_statuses
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.scim import identity
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.migrations import fetch_schema_version

CHECKS: Final = "checks"
# Since then the tables of checks and data sources have the columns that are read here.
_OLDEST_WITH_PATTERNS: Final = 41
_MOST_PATTERNS_NAMED: Final = 10

PEOPLE: Final = "people"
_MOST_PEOPLE_NAMED: Final = 50
_CONFIRM: Final = "If the account is theirs, run `factbook people confirm {}`."

RIGHTS: Final = "rights of groups"
# The newest migration of the first schema with all that is read here.
_OLDEST_WITH_RIGHTS: Final = 39

IMPORTERS: Final = "importers"
# Intervals without a complete reading that are not unusual yet.
_LATE_INTERVALS: Final = 3


async def examine_checks(database: Database) -> AsyncIterator[Finding]:
    """Findings on checks whose results are not to be relied on."""
    stored = await check_store.everything(database)
    published = {one.id: one.published for one in stored if one.published is not None}
    cards = await scorecard_store.everything(database)
    found = [
        *_unusable_checks(published),
        *_find_circles(published),
        *_old_patterns(stored),
        *_idle_rules(stored, cards),
    ]
    for finding in found:
        yield finding
    for finding in find_source_patterns(await source_store.everything(database)):
        yield finding
    if published and not any(one.state == "problem" for one in found):
        yield ok(CHECKS, f"All {len(published)} published checks can be evaluated.")


def _unusable_checks(published: Mapping[str, dict[str, Any]]) -> Iterator[Finding]:
    for id_, document in published.items():
        try:
            parse_stored_check(document)
        except FactbookError as error:
            what = f"This release cannot evaluate {id_}: {error.message}"
            yield problem(CHECKS, what, "Publish it anew, or start the release that it is of.")


async def examine_old_patterns(database: Database) -> AsyncIterator[Finding]:
    """Patterns on a schema from before the upgrade, unless that is too old to tell."""
    if await fetch_schema_version(database) < _OLDEST_WITH_PATTERNS:
        what = "This schema is too old to list the patterns that this release refuses."
        yield warning(CHECKS, what, "Run `factbook doctor` again after the upgrade.")
        return
    for finding in _old_patterns(await check_store.everything(database)):
        yield finding
    for finding in find_source_patterns(await source_store.everything(database)):
        yield finding


def _old_patterns(stored: Iterable[StoredCheck]) -> Iterator[Finding]:
    """Patterns that this release refuses, or reads differently than releases before it did."""
    for one in stored:
        try:
            check = parse_stored_check(one.published or one.draft)
        except FactbookError:
            continue
        owner = f", which belongs to {check.owner}," if check.owner else ""
        for path, reason in find_refused_check_patterns(check):
            yield problem(
                CHECKS,
                f"The check {one.id}{owner} is unknown in this release: the pattern at {path} "
                f"{reason}.",
                "Change the pattern and publish the check.",
            )
        for path, text in _readable_patterns(check):
            for difference in user_patterns.explain_differences(text):
                yield warning(
                    CHECKS,
                    f"The check {one.id}{owner} reads text differently: in the pattern at {path} "
                    f"{difference}.",
                    "If its texts have other characters, change the pattern and publish the check.",
                )


def _readable_patterns(check: Check) -> Iterator[tuple[str, str]]:
    for path, rule in check.rules():
        for where, leaf in language.walk_leaves(rule, path):
            if leaf.operator in PATTERN_OPERATORS and not any(language.find_refused_patterns(leaf)):
                yield f"{where}.value", leaf.value


def find_source_patterns(stored: Iterable[StoredSource]) -> Iterator[Finding]:
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
            shown = ", ".join(idle[:_MOST_PATTERNS_NAMED]) + (
                ", …" if len(idle) > _MOST_PATTERNS_NAMED else ""
            )
            what = f"The exemption rules of scorecard {card.id} have no effect on {shown}."
            yield warning(
                CHECKS,
                what,
                "Its owner does not own these checks. To make the rules count, publish the "
                f"scorecard again with the permission {SCORECARD_WRITE}.",
            )


def _find_circles(published: Mapping[str, dict[str, Any]]) -> Iterator[Finding]:
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
            yield problem(CHECKS, what, advice)


async def examine_people(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    """Findings on accounts that lack a role or groups until an administrator confirms them."""
    try:
        rules = group_roles.make_group_rules(settings)
    except ConfigurationError as error:
        yield problem(PEOPLE, error.message, "Correct the table [group_roles].")
        return
    for one in (await identity.list_unproven_roles(database, rules))[:_MOST_PEOPLE_NAMED]:
        name = one.ref.removeprefix(users.PREFIX)
        yield warning(
            PEOPLE,
            f"{one.ref} does not get the role {one.role} of the group {one.group}: nothing proves "
            f"that the account belongs to the SCIM user {one.user_name}.",
            _CONFIRM.format(f"{name} --user-name {one.user_name}"),
        )
    unproven = await identity.list_unproven_people(database)
    without = [one.name for one in unproven if one.proof is not None]
    older = [one.name for one in unproven if one.proof is None]
    if without:
        yield warning(
            PEOPLE,
            "These accounts have the name of a user in the catalog, and not the user's groups: "
            f"{_list_names(without)}.",
            _CONFIRM.format("NAME"),
        )
    if older:
        yield warning(
            PEOPLE,
            "These accounts keep the groups of the user in the catalog whose name they have, "
            f"though nobody has confirmed them: {_list_names(older)}.",
            f"{_CONFIRM.format('NAME')} Otherwise disable it on the page People.",
        )


def _list_names(names: Iterable[str]) -> str:
    listed = list(names)
    more = (
        f" and {len(listed) - _MOST_PEOPLE_NAMED} more" if len(listed) > _MOST_PEOPLE_NAMED else ""
    )
    return ", ".join(listed[:_MOST_PEOPLE_NAMED]) + more


async def examine_rights(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    """Sets that state memberships without rights, and each person with an account who lacks one.

    They are warnings until `people_sets` is set, to an empty list if none is to be trusted.
    """
    trust = PeopleTrust.of(settings)
    sets = await people_trust.find_sets_without_rights(database, trust)
    lost = await people_trust.find_lost_rights(database, trust, settings.annotation_domain)
    for one in sets:
        what = f"Memberships in {one.place} that give no rights: {one.memberships:,}."
        yield _rights_finding(settings, what, one.setting)
    for right in lost:
        groups = ", ".join(right.groups)
        what = f"{right.person} doesn't have the rights of {groups}: only {right.place} says so."
        yield _rights_finding(settings, what, right.remedy)
    if not sets:
        yield ok(RIGHTS, "Trusted sets state every membership.")


async def examine_rights_after_upgrade(
    database: Database, settings: Settings
) -> AsyncIterator[Finding]:
    """The same on a schema from before the upgrade, unless that is too old to tell."""
    if await fetch_schema_version(database) < _OLDEST_WITH_RIGHTS:
        what = "This schema is too old to list who will lack rights of groups."
        yield warning(RIGHTS, what, "Run `factbook doctor` again after the upgrade.")
        return
    async for finding in examine_rights(database, settings):
        yield finding


def _rights_finding(settings: Settings, what: str, setting: str) -> Finding:
    if settings.people_sets is not None:
        return ok(RIGHTS, f"{what} To change that: {setting}")
    advice = f"To trust it: {setting}. To trust none: people_sets = []."
    return warning(RIGHTS, what, advice)


async def examine_importers(
    database: Database, registry: ImporterRegistry, now: int
) -> AsyncIterator[Finding]:
    """Findings on importers that cannot be used, fail, are late, or hold removals."""
    fine, known = 0, (await registry.current()).values()
    for id_, why in sorted(registry.problems.items()):
        yield problem(IMPORTERS, f"{id_} cannot be used: {why}", "Correct it on the page Imports.")
    for one in await list_importer_statuses(database, known, now):
        found = list(_importer_findings(one, now))
        fine += not found
        for finding in found:
            yield finding
    if fine:
        yield ok(IMPORTERS, f"{fine} of {len(known)} importers are well.")


def _importer_findings(one: ImporterStatus, now: int) -> list[Finding]:
    id_, found = one.importer.id, []
    if one.last is not None and one.last.state == "failed":
        what = f"{id_} read nothing: {one.last.error}."
        found.append(problem(IMPORTERS, what, "What was imported stays. Then: factbook import run"))
    elif one.last is not None and one.last.state == "partial":
        what = f"{id_} did not read everything: {one.last.error}."
        found.append(warning(IMPORTERS, what, f"`factbook import list` names the parts of {id_}."))
    elif _is_reading_late(one, now):
        when = (
            "never read everything"
            if one.complete_at is None
            else _since_complete(one.complete_at, now)
        )
        advice = "Look whether `serve` or a worker runs and collects."
        found.append(warning(IMPORTERS, f"{id_} {when}.", advice))
    if one.held:
        what = f"{id_} holds {one.held:,} removals that wait for a decision."
        found.append(warning(IMPORTERS, what, "See the page Imports, or `factbook import list`."))
    return found


def _is_reading_late(one: ImporterStatus, now: int) -> bool:
    every, run = one.importer.every, one.last
    if every is None or run is None:
        return False
    return now - (one.complete_at or run.asked_at) > _LATE_INTERVALS * every


def _since_complete(complete_at: int, now: int) -> str:
    return f"read everything {ago(complete_at, now)} for the last time"
