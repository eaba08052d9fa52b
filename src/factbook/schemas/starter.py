"""Answers of the interface of the starter scorecard."""

from typing import Annotated, Any

from msgspec import Meta

from factbook.schemas.common import WireAnswer


class StarterCheck(WireAnswer):
    """A check of the starter that no data source can answer."""

    check: str
    title: str
    fact: Annotated[str, Meta(description="What no data source has.")]


class StarterDocuments(WireAnswer):
    """Documents of the starter, as they would be adopted."""

    checks: list[dict[str, Any]]
    scorecards: list[dict[str, Any]]
    missing: list[StarterCheck]


class AdoptedStarter(WireAnswer):
    """Ids of the new drafts, of what was there before, and what is left out."""

    made: list[str]
    kept: list[str]
    missing: list[StarterCheck]
