"""Scorecards: ordered levels over checks, and parsing of scorecard documents.

{"id": "readiness", "title": "Readiness", "levels": ["bronze", "silver"],
 "entries": [{"check": "has-owner", "level": "bronze"}, {"check": "slo", "weight": 2}]}
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from factbook.catalog import filters
from factbook.catalog.filters import EntityFilter
from factbook.checks import document_readers
from factbook.checks.document_readers import DocumentMember
from factbook.clock import DAY, iso
from factbook.errors import meant, one_of
from factbook.facts.datasource import Report

MOST_LEVELS: Final = 20
MOST_ENTRIES: Final = 1_000
MOST_APPROVERS: Final = 50
MOST_DAYS: Final = 3_650
DEFAULT_DAYS: Final = 365
MOST_WEIGHT: Final = 1_000
MINIMUM_COVERAGE: Final = 0.5
# Stands for "no level" in filters and responses.
NO_LEVEL_WORD: Final = "none"
NO_LEVEL_TITLE: Final = "no level"
_LEVEL_MEMBERS: Final = (
    DocumentMember("id", "id", document_readers.read_identifier, required=True),
    DocumentMember("title", "title", document_readers.read_title),
)
_TARGET_MEMBERS: Final = (
    DocumentMember("level", "level", document_readers.read_identifier, required=True),
    DocumentMember("by", "by", document_readers.read_day, required=True),
)


class ScorecardLevel(NamedTuple):
    """A level; its position in the scorecard is its rank."""

    id: str
    title: str


class ScorecardEntry(NamedTuple):
    """A check in a scorecard; without a level it only counts toward the score.

    An advisory entry is shown but never counts. `effort` is the relative effort of fixing it.
    """

    check: str
    level: str | None = None
    weight: float = 1
    advisory: bool = False
    effort: float = 1


class ExemptionRules(NamedTuple):
    """Rules for exemptions from a scorecard's checks; without approvers a permission decides.

    Exemptions end within a year unless `max_days` is set or `permanent` exemptions are allowed.
    """

    enabled: bool = True
    max_days: int | None = None
    approvers: tuple[str, ...] = ()
    permanent: bool = False

    def most_days(self, usual: int) -> int | None:
        """The maximum length in days, `usual` by default; None if unlimited."""
        # An end in ten thousand years is as good as none.
        return self.max_days or (None if self.permanent else usual)


# For scorecards without rules, and for checks outside every scorecard.
NO_RULES: Final = ExemptionRules()


class ScorecardTarget(NamedTuple):
    """A level that every entity should reach by the end of a day; `by` is its start in ms."""

    level: str
    by: int

    @property
    def ends_at(self) -> int:
        """The end of that day."""
        return self.by + DAY


@dataclass(frozen=True, kw_only=True)
class Scorecard:
    """A scorecard; None means not given."""

    id: str
    title: str
    description: str | None = None
    owner: str | None = None
    applies_to: EntityFilter | None = None
    levels: tuple[ScorecardLevel, ...] = ()
    entries: tuple[ScorecardEntry, ...]
    exemptions: ExemptionRules = NO_RULES
    public: bool = False
    target: ScorecardTarget | None = None
    effective_from: int | None = None
    minimum_coverage: float = MINIMUM_COVERAGE

    @property
    def checks(self) -> frozenset[str]:
        """The ids of its checks."""
        return frozenset(entry.check for entry in self.entries)

    def rank(self, level: str | None) -> int:
        """The rank of a level, from 1; 0 for None."""
        return 0 if level is None else self.ranks[level]

    @property
    def ranks(self) -> dict[str, int]:
        """The ranks of the levels, from 1."""
        return {level.id: rank for rank, level in enumerate(self.levels, 1)}

    def is_effective(self, now: int) -> bool:
        """Return true if the scorecard counts at `now`."""
        return self.effective_from is None or self.effective_from <= now


def parse_scorecard(document: object, checks: Collection[str] | None = None) -> Scorecard:
    """Parse a scorecard; `checks` are the ids that it may name, None for any.

    Raises InvalidItemsError with every problem and its path.
    """

    def further(values: Mapping[str, Any], report: Report) -> None:
        if checks is not None and isinstance(document, dict):  # stored ones may break this
            _check_guards(document, report)
        _check_members(values, checks, report)

    return Scorecard(
        **document_readers.read_document(document, _SCORECARD_MEMBERS, "scorecard", further)
    )


def list_named_checks(document: Mapping[str, Any]) -> set[str]:
    """The ids of the checks in a stored document, which another release may have accepted."""
    entries = document.get("entries", ())
    return {one if isinstance(one, str) else one["check"] for one in entries}


def format_day(moment: int) -> str:
    """The date of a time, as in documents."""
    return iso(moment)[:10]


def _check_guards(document: Mapping[str, Any], report: Report) -> None:
    """Report empty exemption rules: they would let more people decide, or for longer."""
    rules = document.get("exemptions", NO_RULES)
    if not rules:
        report("exemptions", document_readers.EMPTY_GUARD)
    for name, value in rules.items() if isinstance(rules, dict) else ():
        if value in (None, "", []):
            report(f"exemptions.{name}", document_readers.EMPTY_GUARD)


def _check_members(
    values: Mapping[str, Any], checks: Collection[str] | None, report: Report
) -> None:
    """Report inconsistencies between the members of a document."""
    levels = {level.id for level in values.get("levels", ())}
    for place, entry in enumerate(values.get("entries", ())):
        _check_entry(entry, f"entries[{place}]", levels, checks, report)
    target: ScorecardTarget | None = values.get("target")
    if target is not None and target.level and target.level not in levels:
        report("target.level", _refuse_level(target.level, levels))


def _check_entry(
    entry: ScorecardEntry,
    path: str,
    levels: Collection[str],
    checks: Collection[str] | None,
    report: Report,
) -> None:
    if checks is not None and entry.check and entry.check not in checks:
        report(f"{path}.check", f'there is no check "{entry.check}"{meant(entry.check, checks)}')
    if entry.level and entry.level not in levels:
        report(f"{path}.level", _refuse_level(entry.level, levels))


def _refuse_level(level: str, levels: Collection[str]) -> str:
    if not levels:
        return "names a level, but the scorecard has no levels"
    return one_of(level, levels)


def _read_levels(value: object, path: str, report: Report) -> tuple[ScorecardLevel, ...]:
    levels = list[ScorecardLevel]()
    listed = document_readers.read_array(value, path, report, MOST_LEVELS)
    for place, item in enumerate(listed):
        where = f"{path}[{place}]"
        if isinstance(item, str):
            id_ = document_readers.read_identifier(item, where, report)
            levels.append(ScorecardLevel(id_, item))
        else:
            members = document_readers.read_members(item, where, report, _LEVEL_MEMBERS, "level")
            id_ = members.get("id", "")
            levels.append(ScorecardLevel(id_, members.get("title") or id_))
    ids = [level.id for level in levels]
    document_readers.report_repeated(ids, path, report, "level")
    if NO_LEVEL_WORD in ids:
        report(path, f'cannot have the level "{NO_LEVEL_WORD}", which stands for no level')
    return tuple(levels)


def _read_entries(value: object, path: str, report: Report) -> tuple[ScorecardEntry, ...]:
    given = document_readers.read_array(value, path, report, MOST_ENTRIES)
    if isinstance(value, list) and not value:
        report(path, "has to name at least one check")
    found = tuple(_read_entry(one, f"{path}[{place}]", report) for place, one in enumerate(given))
    document_readers.report_repeated([entry.check for entry in found], path, report, "check")
    return found


def _read_entry(value: object, path: str, report: Report) -> ScorecardEntry:
    if isinstance(value, str):
        return ScorecardEntry(document_readers.read_identifier(value, path, report))
    given = document_readers.read_members(
        value, path, report, _ENTRY_MEMBERS, "entry of a scorecard"
    )
    return ScorecardEntry(**{"check": "", **given})


def _read_weight(value: object, path: str, report: Report) -> float:
    return document_readers.read_number(value, path, report, 0, MOST_WEIGHT, above=True)


def _read_exemption_rules(value: object, path: str, report: Report) -> ExemptionRules:
    return ExemptionRules(
        **document_readers.read_members(value, path, report, _RULE_MEMBERS, "rule of exemptions")
    )


def _read_approvers(value: object, path: str, report: Report) -> tuple[str, ...]:
    given = document_readers.read_array(value, path, report, MOST_APPROVERS)
    return tuple(
        document_readers.read_entity_reference(one, f"{path}[{place}]", report, kind="group")
        for place, one in enumerate(given)
    )


def _read_target(value: object, path: str, report: Report) -> ScorecardTarget:
    given = document_readers.read_members(value, path, report, _TARGET_MEMBERS, "target")
    return ScorecardTarget(**{"level": "", "by": 0, **given})


def _read_card_filter(value: object, path: str, report: Report) -> EntityFilter:
    return filters.parse_entity_filter([value] if isinstance(value, dict) else value, path, report)


_ENTRY_MEMBERS: Final = (
    DocumentMember("check", "check", document_readers.read_identifier, required=True),
    DocumentMember("level", "level", document_readers.read_identifier),
    DocumentMember("weight", "weight", _read_weight),
    DocumentMember("advisory", "advisory", document_readers.read_boolean),
    DocumentMember("effort", "effort", _read_weight),
)


_RULE_MEMBERS: Final = (
    DocumentMember("enabled", "enabled", document_readers.read_boolean),
    DocumentMember(
        "maxDays",
        "max_days",
        partial(document_readers.read_whole_number, least=1, most=MOST_DAYS),
    ),
    DocumentMember("approvers", "approvers", _read_approvers),
    DocumentMember("permanent", "permanent", document_readers.read_boolean),
)


_SCORECARD_MEMBERS: Final = (
    DocumentMember("id", "id", document_readers.read_identifier, required=True),
    DocumentMember("title", "title", document_readers.read_title, required=True),
    DocumentMember("description", "description", document_readers.read_text),
    DocumentMember("owner", "owner", document_readers.read_entity_reference),
    DocumentMember("appliesTo", "applies_to", _read_card_filter),
    DocumentMember("levels", "levels", _read_levels),
    DocumentMember("entries", "entries", _read_entries, required=True),
    DocumentMember("exemptions", "exemptions", _read_exemption_rules),
    DocumentMember("public", "public", document_readers.read_boolean),
    DocumentMember("target", "target", _read_target),
    DocumentMember("effectiveFrom", "effective_from", document_readers.read_day),
    DocumentMember(
        "minimumCoverage",
        "minimum_coverage",
        partial(document_readers.read_number, least=0, most=1),
    ),
)
