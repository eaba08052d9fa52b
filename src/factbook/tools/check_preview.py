"""get-check-preview: what a check would change, before it is stored."""

import asyncio
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.catalog import ref as refs
from factbook.catalog.store import stored_entities
from factbook.checks import state, trials
from factbook.checks.definitions import definition_writes
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import entity_evaluation
from factbook.checks.rules import language, rule_evaluation
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.trials import PreviewScope
from factbook.errors import InputError, ToolError
from factbook.facts import store
from factbook.tools import check_common
from factbook.tools.check_common import (
    COUNTS,
    DISCOVER,
    EVIDENCE,
    drop_empty,
    render_counts,
    render_explanation,
    shorten_text,
)
from factbook.tools.tool import (
    AGE,
    SIZE_NOTE,
    Context,
    Tool,
    build_unknown_entity_error,
    describe_argument,
    describe_list,
    describe_record,
    encode_result,
)

Document = dict[str, Any]


class CheckPreviewArguments(Struct, forbid_unknown_fields=True):
    """A definition, or changes to a stored one, and perhaps one entity."""

    definition: (
        Annotated[
            dict[str, Any],
            describe_argument(
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
        Annotated[
            str, describe_argument("Id of a stored check; give this or definition.", "covered")
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="checkId")
    changes: (
        Annotated[
            dict[str, Any],
            describe_argument(
                "Members to replace in the stored check; none when left out.",
                {"onUnknown": "fail"},
            ),
        ]
        | UnsetType
    ) = UNSET
    entity_ref: (
        Annotated[
            str,
            describe_argument("One entity; all when left out.", "component:default/payments-api"),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="entityRef")
    limit: Annotated[
        int, describe_argument("Most changed entities to return.", 20, ge=1, le=200)
    ] = 20


async def run_check_preview(arguments: CheckPreviewArguments, context: Context) -> str:
    """Counts now and with the check, and the first entities that would change."""
    check = await _read_previewed_check(arguments, context)
    ref = await _read_example_ref(arguments, context)
    scope = PreviewScope([ref] if ref else [])
    caller = context.call.grant.id
    try:
        found = await trials.preview_check(
            context.database, check, context.now, arguments.limit, caller, scope
        )
    except InputError as error:
        raise ToolError(error.message) from None
    answer = {
        "rule": shorten_text(language.describe_rule(check.rule)),
        **found.age.render(),
        "now": render_counts(found.now),
        "then": render_counts(found.then),
        "changed": found.changed,
        "entities": [
            dict(zip(("entityRef", "from", "to"), (one.ref, *one.words), strict=True))
            for one in found.first
        ],
    }
    told = await _explain_entity(check, ref, context) if ref else {}
    return encode_result({**answer, **told})


async def _read_previewed_check(arguments: CheckPreviewArguments, context: Context) -> Check:
    document, check_id = arguments.definition, arguments.check_id
    if isinstance(document, dict) is isinstance(check_id, str):
        raise ToolError(f"Give exactly one of definition and checkId. {DISCOVER}")
    if isinstance(check_id, str):
        stored = await check_common.require_existing(
            check_store.existing(context.database, check_id)
        )
        changes = arguments.changes if isinstance(arguments.changes, dict) else {}
        merged = {**stored.written, **changes}
        document = {name: value for name, value in merged.items() if value is not None}
    assert isinstance(document, dict)
    call = context.call
    try:
        return await definition_writes.read_check_document(
            document, context.database, call.registry, call.settings.max_json_depth
        )
    except InputError as error:
        raise ToolError(f"The check cannot be taken: {error.message}") from None


async def _read_example_ref(arguments: CheckPreviewArguments, context: Context) -> str:
    if not isinstance(arguments.entity_ref, str):
        return ""
    try:
        ref = refs.canonicalize_ref(arguments.entity_ref, kind="component")
    except InputError as error:
        raise ToolError(f"entityRef: {error.message}") from None
    if await stored_entities.read_entity_id(context.database, ref) is None:
        raise await build_unknown_entity_error(context.database, ref)
    return ref


async def _explain_entity(check: Check, ref: str, context: Context) -> Document:
    """The result of the entity, with the facts that it would rest on."""
    database = context.database
    entity_id = await stored_entities.read_entity_id(database, ref)
    document = await stored_entities.read_collectable(database, ref)
    if entity_id is None or document is None:
        return {}
    own = await entity_evaluation.read_own_facts(database, entity_id)
    facts = {**await store.list_latest_by_ref(database, ref), **own}
    entity = CheckedEntity(ref, document, facts)
    told = await asyncio.to_thread(rule_evaluation.explain_check, check, entity, context.now)
    return drop_empty(
        {"result": {"state": state.name_state(told.state), **render_explanation(told, values=True)}}
    )


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
    output_schema=describe_record(
        {
            "rule": _TEXT,
            **AGE,
            "now": COUNTS,
            "then": COUNTS,
            "changed": {"type": "integer", "description": "Entities that would change."},
            "entities": describe_list(
                describe_record({"entityRef": _TEXT, "from": _TEXT, "to": _TEXT}, ("entityRef",))
            ),
            "result": describe_record(
                {"state": _TEXT, "message": _TEXT, "because": EVIDENCE}, ("state",)
            ),
        },
        ("rule", "asOf", "now", "then", "changed", "entities"),
    ),
    run=run_check_preview,
    permissions=(CATALOG_READ, SOURCE_READ),
)
