"""Data sources that checks of tests refer to."""

from factbook.checks.definitions import definition_writes
from factbook.checks.definitions.definition_writes import CheckContext
from factbook.checks.rules.check_definition import Check
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from tests.checks import making, random_rules

CODE = DataSource(
    id="code",
    title="Code",
    schema=(
        Fact("protected", "boolean"),
        Fact("approvals", "integer"),
        Fact("open", "integer"),
        Fact("age", "float", unit="hours"),
        Fact("longest", "float", unit="hours"),
        Fact("delay", "float", unit="seconds"),
        Fact("language", "string"),
        Fact("languages", "set"),
        Fact("pushedAt", "datetime"),
        Fact("createdAt", "datetime"),
        Fact("manifest", "object"),
    ),
)
RANDOM = tuple(
    DataSource(
        id=id_,
        title=id_,
        schema=tuple(
            Fact(f"{group}.{type_}", type_)
            for group in random_rules.GROUPS
            for type_ in random_rules.VALUES
        ),
    )
    for id_ in random_rules.SOURCES
)
SOURCES = {source.id: source for source in (CODE, *RANDOM)}


def mistakes(one: Check, *others: Check) -> dict[str, str]:
    """The mistakes in what a check refers to, by path."""
    context = CheckContext(SOURCES, {other.id: other for other in others})
    return {
        found["path"]: found["message"]
        for found in definition_writes.find_check_problems(one, context)
    }


def leaf(fact: str, operator: str, value: object = None, **members: object) -> dict[str, object]:
    """A comparison of a fact of the source `code`."""
    given = {} if value is None else {"value": value}
    return {"source": "code", "fact": fact, "operator": operator, **given, **members}


def refused(rule: object, *others: Check, **members: object) -> dict[str, str]:
    """The mistakes for which a check with this rule is refused, by path."""
    return mistakes(making.check(rule, **members), *others)
