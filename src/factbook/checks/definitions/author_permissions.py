"""Permissions that the author of a check needs, beside the one to write checks.

Results tell about what a rule reads, and rules can ask for every value: who may not read a value
could find it by saving checks.
"""

from collections.abc import Iterator

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.language import CHECKS, ENTITY

_OF_SOURCES = {ENTITY: CATALOG_READ, CHECKS: CHECK_READ}


def needed(check: Check) -> tuple[str, ...]:
    """The permissions to read what the check reads, sorted."""
    found = {_OF_SOURCES.get(source, SOURCE_READ) for source in _sources(check)}
    if check.applies_to is not None:
        found.add(CATALOG_READ)
    return tuple(sorted(found))


def _sources(check: Check) -> Iterator[str]:
    for _, rule in check.rules():
        yield from (fact.source for fact in language.walk_references(rule))
    for _, text in check.templates():
        yield from check_definition.parse_template(text).sources()
