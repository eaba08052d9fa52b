"""get-check-preview: what a check would change, before it is stored."""

import asyncio
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.catalog import ref as refs
from factbook.catalog.store import collectable
from factbook.checks import state
from factbook.checks.definitions.check import Check
from factbook.checks.evaluation import explanation
from factbook.checks.maintenance import latest_facts
from factbook.checks.rules import sentence
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.submissions import check_documents
from factbook.checks.trials import preview
from factbook.checks.trials.preview import PreviewScope
from factbook.checks.versions.check_store import check_store
from factbook.errors import InputError, ToolError
from factbook.facts import store
from factbook.tools.checks import arguments as given
from factbook.tools.checks.arguments import DISCOVER
from factbook.tools.checks.shown import COUNTS, EVIDENCE, counts, explained, said, short
from factbook.tools.result_schema import AGE, SIZE_NOTE, array, record
from factbook.tools.tool import Context, Tool, argument, encode, unknown_entity

Document = dict[str, Any]


class CheckPreviewArguments(Struct, forbid_unknown_fields=True):
    """A definition, or changes to a stored one, and perhaps one entity."""

    definition: (
        Annotated[
            dict[str, Any],
            argument(
                "A whole check: id, title and rule, which is a comparison, or all, any or not of "
                "such; give this or checkId.",
                {
                    "id": "covered",
                    "title": "Covered",
                    "rule": {
                        "source": "coverage",
                        "fact": "lines",
                        "operator": "greaterThan",
                        "value": 80,
                    },
                },
            ),
        ]
        | UnsetType
    ) = UNSET
    check_id: (
        Annotated[str, argument("Id of a stored check; give this or definition.", "covered")]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="checkId")
    changes: (
        Annotated[
            dict[str, Any],
            argument(
                "Members to replace in the stored check; none when left out.",
                {"onUnknown": "fail"},
            ),
        ]
        | UnsetType
    ) = UNSET
    entity_ref: (
        Annotated[str, argument("One entity; all when left out.", "component:default/payments-api")]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="entityRef")
    limit: Annotated[int, argument("Most changed entities to return.", 20, ge=1, le=200)] = 20


async def run(arguments: CheckPreviewArguments, context: Context) -> str:
    """Counts now and with the check, and the first entities that would change."""
    check = await _check(arguments, context)
    ref = await _ref(arguments, context)
    scope = PreviewScope([ref] if ref else [])
    caller = context.call.grant.id
    try:
        found = await preview.preview(
            context.database, check, context.now, arguments.limit, caller, scope
        )
    except InputError as error:
        raise ToolError(error.message) from None
    answer = {
        "rule": short(sentence.of(check.rule)),
        **found.age.render(),
        "now": counts(found.now),
        "then": counts(found.then),
        "changed": found.changed,
        "entities": [
            dict(zip(("entityRef", "from", "to"), (one.ref, *one.words), strict=True))
            for one in found.first
        ],
    }
    told = await _explained(check, ref, context) if ref else {}
    return encode({**answer, **told})


async def _check(arguments: CheckPreviewArguments, context: Context) -> Check:
    document, check_id = arguments.definition, arguments.check_id
    if isinstance(document, dict) is isinstance(check_id, str):
        raise ToolError(f"Give exactly one of definition and checkId. {DISCOVER}")
    if isinstance(check_id, str):
        stored = await given.existing(check_store.existing(context.database, check_id))
        changes = arguments.changes if isinstance(arguments.changes, dict) else {}
        merged = {**stored.written, **changes}
        document = {name: value for name, value in merged.items() if value is not None}
    assert isinstance(document, dict)
    call = context.call
    try:
        return await check_documents.read_check(
            document, context.database, call.registry, call.settings.max_json_depth
        )
    except InputError as error:
        raise ToolError(f"The check cannot be taken: {error.message}") from None


async def _ref(arguments: CheckPreviewArguments, context: Context) -> str:
    if not isinstance(arguments.entity_ref, str):
        return ""
    try:
        ref = refs.canonical(arguments.entity_ref, kind="component")
    except InputError as error:
        raise ToolError(f"entityRef: {error.message}") from None
    if await collectable.id_of(context.database, ref) is None:
        raise await unknown_entity(context.database, ref)
    return ref


async def _explained(check: Check, ref: str, context: Context) -> Document:
    """The result of the entity, with the facts that it would rest on."""
    database = context.database
    entity_id = await collectable.id_of(database, ref)
    document = await collectable.entity(database, ref)
    if entity_id is None or document is None:
        return {}
    own = await latest_facts.own_of(database, entity_id)
    facts = {**await store.latest_of_ref(database, ref), **own}
    entity = CheckedEntity(ref, document, facts)
    told = await asyncio.to_thread(explanation.explain, check, entity, context.now)
    return said({"result": {"state": state.word(told.state), **explained(told, values=True)}})


_TEXT: Final = {"type": "string"}

TOOL = Tool(
    name="get-check-preview",
    title="Preview of a check",
    description=(
        "Returns what a new or a changed check would do: entities by state as they are and as "
        "they would be, and those that would change, from none where there is no result yet; with "
        "entityRef why. Nothing is stored. Give exactly one of definition and checkId, from "
        "get-scorecard-discovery; facts are named as get-data-source-discovery has them. "
        f"{SIZE_NOTE}; `limit` bounds the entities."
    ),
    arguments=CheckPreviewArguments,
    output_schema=record(
        {
            "rule": _TEXT,
            **AGE,
            "now": COUNTS,
            "then": COUNTS,
            "changed": {"type": "integer", "description": "Entities that would change."},
            "entities": array(
                record({"entityRef": _TEXT, "from": _TEXT, "to": _TEXT}, ("entityRef",))
            ),
            "result": record({"state": _TEXT, "message": _TEXT, "because": EVIDENCE}, ("state",)),
        },
        ("rule", "asOf", "now", "then", "changed", "entities"),
    ),
    run=run,
    permissions=(CATALOG_READ, SOURCE_READ),
)
