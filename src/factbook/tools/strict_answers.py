"""Answers with exactly the members of the first nine tools, for clients that refuse others."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from factbook.tools.tool import encode


def _record(names: str, **parts: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split()) | parts


_ENTRY: Final = _record("entityRef facts timestamp")
_HANDLER: Final = _record("type", config=_record("id builtinId"))
# Members of an answer, below each those that it has; None keeps whatever is there, and `*` stands
# for members with any name.
_MEMBERS: Final[Mapping[str, Any]] = {
    "get-data-source-discovery": _record(
        "totalCount builtinCount customCount",
        dataSources=_record(
            "id title description cadence lifecycle createdAt updatedAt timeout draft version "
            "entityFilter",
            handlerDefinition=_HANDLER,
            schema={"*": _record("type description", metadata=_record("key"))},
        ),
    ),
    "get-entity-facts": _record("dataSourceId dataSourceTitle entityRef facts timestamp"),
    "get-all-entities-facts": _record("dataSourceId dataSourceTitle", entities=_ENTRY),
    "get-codehost-metrics": _record(
        "",
        pullRequests=_record("total merged open mergedPercentage mergedLastMonth"),
        mergeTime=_record(
            "avgHours avgLastMonthHours minHours maxHours minLastMonthHours maxLastMonthHours"
        ),
        issues=_record("total open closed closedLastMonth"),
        latestMergedPR=_record("title author"),
        collaboration=_record("languages collaborators collaboratorCount"),
        branchProtection=_record(
            "enabled enforceAdmins allowDeletions requiredLinearHistory allowForcePushes "
            "blockCreations requiredSignatures"
        ),
        codeReview=_record(
            "dismissStaleReviews requireCodeOwnerReviews requireLastPushApproval "
            "strictRequiredStatusChecks usesCodeowners codeownersHasErrors "
            "requiredApprovingReviewCount codeownersErrorCount"
        ),
    ),
    "get-security-metrics": _record(
        "branchProtection",
        scannerIssues=_record("total critical high medium low"),
        dependencyAlerts=_record("open dismissed fixed"),
    ),
    "get-incident-metrics": _record(
        "",
        incidentMetrics=_record(
            "totalIncidents monthlyIncidents quarterlyIncidents meanTimeToResolve "
            "meanTimeToFirstAck upTimePercentage"
        ),
        serviceInfo=_record(
            "hasEscalationPolicy hasTeamsAssigned hasDescription alertCreationType"
        ),
    ),
    "get-observability-metrics": _record("sloCount monitorCount"),
    "get-entity-compliance": _record(
        "",
        metadata=_record("hasTitle hasDescription hasTags hasOwner"),
        techdocs=_record("hasTechdocsRef"),
        ownership=_record("hasOwner hasGroupOwner hasRelationships"),
    ),
    "get-repository-info": _record(
        "filePaths totalFiles inCatalog",
        fileTypes=_record("docker yaml javascript python docs config"),
    ),
}


def strict(tool: str, answer: str) -> str:
    """The answer of a tool, in JSON, without members that were added to it; others unchanged."""
    members = _MEMBERS.get(tool)
    return answer if members is None else encode(_kept(msgspec.json.decode(answer), members))


def _kept(value: Any, members: Mapping[str, Any] | None) -> Any:
    if members is None:
        return value
    if isinstance(value, list):
        return [_kept(one, members) for one in value]
    if "*" in members:
        return {name: _kept(one, members["*"]) for name, one in value.items()}
    return {name: _kept(value[name], members[name]) for name in value if name in members}
