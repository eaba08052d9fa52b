"""request-check-exemption: asks for an exemption, which somebody else decides on."""

from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.audit.trail import audit_writes
from factbook.auth.permissions import CATALOG_READ, CHECK_READ, EXEMPTION_REQUEST
from factbook.auth.tokens import Grant
from factbook.catalog.people_trust import PeopleTrust
from factbook.checks.definitions import definition_writes, exemption_store
from factbook.checks.definitions.definition_writes import ExemptionCaller
from factbook.errors import ConflictError, InputError, NotAllowedError, NotFoundError, ToolError
from factbook.tools.check_common import DISCOVER
from factbook.tools.tool import Context, Tool, describe_argument, describe_record, encode_result


class ExemptionRequestArguments(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The entity, the check or scorecard, the reason and the end."""

    entity_ref: Annotated[
        str, describe_argument("Whole reference of the entity.", "component:default/payments-api")
    ] = msgspec.field(name="entityRef")
    reason: Annotated[
        str, describe_argument("The reason, which people read.", "Shut down in March", min_length=1)
    ]
    check_id: (
        Annotated[str, describe_argument("Id of a check; give this or scorecardId.", "covered")]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="checkId")
    scorecard_id: (
        Annotated[str, describe_argument("Id of a scorecard; give this or checkId.", "readiness")]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="scorecardId")
    until: (
        Annotated[
            str,
            describe_argument(
                "Its last day; only if it may be permanent when left out.", "2027-03-31"
            ),
        ]
        | UnsetType
    ) = UNSET
    link: (
        Annotated[
            str, describe_argument("Link to a ticket; none when left out.", "https://example.com/1")
        ]
        | UnsetType
    ) = UNSET


async def run_exemption_request(arguments: ExemptionRequestArguments, context: Context) -> str:
    """The request as it is stored; raises NotAllowedError unless the caller may ask."""
    given = {
        "entity": arguments.entity_ref,
        "reason": arguments.reason,
        "check": arguments.check_id,
        "scorecard": arguments.scorecard_id,
        "until": arguments.until,
        "link": arguments.link,
    }
    call = context.call
    _require_consent(call.grant)
    caller = ExemptionCaller(
        call.grant.owner, call.grant.permissions, PeopleTrust.of(call.settings)
    )
    write = audit_writes(
        context.database, call.caller(), definition_writes.audit_exemption("exemption.request")
    )
    try:
        wanted = exemption_store.parse_exemption_request(
            {name: value for name, value in given.items() if value is not UNSET}, context.now
        )
        usual = call.settings.exemption_days
        found = await write(
            partial(
                definition_writes.request_exemption,
                wanted=wanted,
                caller=caller,
                now=context.now,
                usual_days=usual,
            )
        )
    except NotFoundError as error:
        raise ToolError(f"{error.message} {DISCOVER}") from None
    except (InputError, ConflictError) as error:
        raise ToolError(f"The request cannot be taken: {error.message}") from None
    return encode_result(found.render())


def _require_consent(grant: Grant) -> None:
    """Raise NotAllowedError for a client that was let in to read alone.

    Members of the group that owns an entity may ask without the permission; whoever lets a client
    act in their name is told of it by that permission.
    """
    if grant.grantable is not None and EXEMPTION_REQUEST not in grant.permissions:
        raise NotAllowedError(
            f"The client was not allowed to ask for exemptions ({EXEMPTION_REQUEST}).",
            missing=(EXEMPTION_REQUEST,),
        )


_TEXT: Final = {"type": "string"}

TOOL = Tool(
    name="request-check-exemption",
    title="Request an exemption",
    description=(
        "Asks that an entity be exempt from a check or from a whole scorecard; it holds once "
        "somebody else has approved it. Ask only when a person told you to, with that person's "
        "reason. The caller has to be a member of the group that owns the entity, or to have the "
        "permission. Ids are from get-scorecard-discovery."
    ),
    arguments=ExemptionRequestArguments,
    output_schema=describe_record(
        dict.fromkeys(
            (
                "id",
                "check",
                "scorecard",
                "entity",
                "reason",
                "link",
                "from",
                "until",
                "state",
                "requestedBy",
                "requestedAt",
                "decidedBy",
                "decidedAt",
                "comment",
            ),
            _TEXT,
        ),
        ("id", "entity", "reason", "state"),
    ),
    run=run_exemption_request,
    permissions=(CATALOG_READ, CHECK_READ),
    writes=True,
)
