"""Parameters of questions about one fact of many entities."""

from typing import Final

from factbook.api.openapi.parameter_types import Choice, Integer, Text
from factbook.facts.reasons import REASONS

FACT: Final = Text(
    name="fact", description="The name of the fact.", required=True, longest=400, example="lines"
)
_PART: Final = (
    ("kind", "Only entities of this kind.", "component"),
    ("namespace", "Only entities of this namespace.", "default"),
    (
        "owner",
        "Only what this group owns, or groups below it; `-` for entities without an owner.",
        "group:default/payments",
    ),
    ("system", "Only parts of this system; `-` for entities without one.", "billing"),
    ("type", "Only entities with this `spec.type`.", "service"),
    ("lifecycle", "Only entities with this `spec.lifecycle`.", "production"),
)
CATALOG_PART: Final = tuple(
    Text(
        name=name,
        description=description,
        pattern=r"[^\x00]*",
        wrong="has the character NUL",
        longest=640,
        example=example,
    )
    for name, description, example in _PART
)
BY: Final = Choice(
    name="by",
    description="Adds figures for each of these; those of a group are without the groups below it.",
    words=("owner", "system", "kind"),
)
TOP: Final = Integer(
    name="top", description="Most frequent texts that are listed, 20 by default.", most=100
)
ENDS: Final = Integer(
    name="ends", description="Entities at each end that are listed, 5 by default.", most=50
)
VALUE_SORT: Final = Choice(
    name="sort",
    description="The order: by reference unless it is given; `-value` has the highest first.",
    words=("entity", "value", "-value"),
)
_WORDS: Final = tuple(REASONS)
VALUE_FILTER: Final[tuple[Choice | Text, ...]] = (
    Choice(
        name="known", description="Only with a value, or only without.", words=("true", "false")
    ),
    Choice(name="reason", description="Only without a value for this reason.", words=_WORDS),
    Text(
        name="value",
        description="Only with this value: of a boolean, a number or a text, or an item of a set.",
        longest=2_000,
        may_be_empty=True,
    ),
    Text(
        name="min",
        description="Only from this value on: a number, or of a datetime an ISO 8601 time.",
        longest=100,
    ),
    Text(name="below", description="Only below this value, in the same form.", longest=100),
)
VALUE_CURSOR: Final = Text(
    name="cursor", description="The `nextCursor` of the page before.", longest=8_000
)
