"""The tools: what they take, what they return, and why something is unknown."""

from .requirement import Requirement

REQUIREMENTS: dict[str, Requirement] = {
    "tools.no-invisible-text": Requirement(
        "decisions §4.2",
        "No answer of a tool holds text that nobody sees; both forms stay one value.",
    ),
    # get-data-source-discovery
    "tools.sources.takes-nothing": Requirement("seed §4.1", "Discovery needs no argument."),
    "tools.sources.lists-sources": Requirement(
        "seed §1; seed §2.2", "Discovery returns the data sources with their fact schemas."
    ),
    "tools.sources.counts": Requirement(
        "seed §2.2; decisions §5.2",
        "totalCount, builtinCount and customCount are numbers that add up.",
    ),
    "tools.sources.ids-work-elsewhere": Requirement(
        "seed §4.1 rule 1; seed §2.1", "Each discovered id is accepted by both fact tools."
    ),
    "tools.sources.limit": Requirement(
        "decisions §4.6", "Discovery takes a `limit`, and the counts stay true."
    ),
    # get-entity-facts
    "tools.entities-facts.arguments": Requirement(
        "seed §4.1", "get-entity-facts requires `dataSourceId` and `name`."
    ),
    "tools.entities-facts.defaults": Requirement(
        "seed §4.1", "get-entity-facts assumes namespace `default` and kind `component`."
    ),
    "tools.entities-facts.result": Requirement(
        "seed §2.3", "It returns dataSourceId, entityRef and facts; title and timestamp may lack."
    ),
    "tools.entities-facts.all-facts-of-the-source": Requirement(
        "seed §1; seed §4.1 rule 2", "Every raw fact that the source has on the entity is there."
    ),
    "tools.entities-facts.of-custom-sources": Requirement(
        "seed §1", "A user's own source is asked for like a builtin one."
    ),
    # get-all-entities-facts
    "tools.all-facts.arguments": Requirement(
        "seed §4.1", "get-all-entities-facts requires only `dataSourceId`."
    ),
    "tools.all-facts.result": Requirement(
        "seed §2.4", "It returns the source's id and, per entity, reference, facts and timestamp."
    ),
    "tools.all-facts.every-tracked-entity": Requirement(
        "seed §1; seed §4.1 rule 3", "Each tracked entity that passes the filters appears once."
    ),
    "tools.all-facts.kind-defaults-to-component": Requirement(
        "seed §4.1 rule 3; decisions §4.5", "Without `kind` only components are returned."
    ),
    "tools.all-facts.every-kind-by-star": Requirement(
        "decisions §4.5; seed §4.1 rule 5", 'With `kind: "*"` entities of all kinds are returned.'
    ),
    "tools.all-facts.namespace-filter": Requirement(
        "seed §4.1", "`namespace` narrows the list; omitted, all namespaces are in it."
    ),
    "tools.all-facts.everything-without-limit": Requirement(
        "decisions §4.6; seed §8", "Without `limit` nothing is cut off."
    ),
    "tools.all-facts.limit-and-cursor": Requirement(
        "decisions §4.6; seed §8",
        "`limit` and `cursor` page, with `nextCursor` and, up to 10,000, `totalCount`.",
    ),
    "tools.all-facts.facts-to-keep": Requirement(
        "decisions §4.6", "`facts` keeps the named facts of each entity and drops the others."
    ),
    # Metric tools in common
    "tools.facts.defaults": Requirement(
        "seed §4.1", "The fixed-shape tools assume namespace `default` and kind `component`."
    ),
    "tools.facts.name-required": Requirement(
        "seed §4.1", "Incident, observability, compliance and repository tools require `name`."
    ),
    "tools.facts.unconfigured-is-unavailable": Requirement(
        "seed §1; seed §7", "Metrics whose integration is not configured are not available."
    ),
    "tools.facts.real-values": Requirement(
        "seed §1", "A configured integration fills its metrics with figures."
    ),
    "tools.facts.misconfigured-is-unavailable": Requirement(
        "seed §7", "A broken integration leaves its metrics unavailable."
    ),
    "tools.facts.name-or-entity-ref": Requirement(
        "seed §4.1 rule 4; decisions §4.4", "Code-host and security tools take either way alone."
    ),
    "tools.facts.agreeing-name-and-ref": Requirement(
        "decisions §4.4", "Name and entityRef together are taken when they mean one entity."
    ),
    "tools.facts.neither-or-differing": Requirement(
        "decisions §4.4", "No name at all, or two that differ: `isError` naming both ways."
    ),
    # get-codehost-metrics
    "tools.codehost.number-leaves": Requirement(
        "seed §2.5", "The shape's number leaves are each a number or `unknown`."
    ),
    "tools.codehost.boolean-leaves": Requirement(
        "seed §2.5", "The shape's boolean leaves are each a boolean or `unknown`."
    ),
    "tools.codehost.pull-requests": Requirement("seed §2.5", "`pullRequests` has its five leaves."),
    "tools.codehost.merge-time": Requirement("seed §2.5", "`mergeTime` has its six leaves."),
    "tools.codehost.issues": Requirement("seed §2.5", "`issues` has its four leaves."),
    "tools.codehost.latest-merged-pr": Requirement(
        "seed §2.5", "`latestMergedPR` has title and author, each a string or `unknown`."
    ),
    "tools.codehost.collaboration": Requirement(
        "seed §2.5", "`collaboration` has two lists of strings and a count."
    ),
    "tools.codehost.branch-protection": Requirement(
        "seed §2.5", "`branchProtection` has its seven leaves."
    ),
    "tools.codehost.code-review": Requirement(
        "seed §2.5", "`codeReview` has its six booleans and two numbers."
    ),
    "tools.codehost.hours": Requirement(
        "seed §2.5; decisions §4.8", "The schema gives merge times in hours."
    ),
    "tools.codehost.percent": Requirement(
        "decisions §4.8", "The schema gives `mergedPercentage` as percent from 0 to 100."
    ),
    "tools.codehost.windows": Requirement(
        "decisions §4.8", "Windows of time follow the stated definitions."
    ),
    # get-security-metrics
    "tools.security.shape": Requirement(
        "seed §2.6", "Scanner issues, dependency alerts and branch protection, all optional."
    ),
    "tools.security.group-names": Requirement(
        "decisions §4.9; seed §2.6", "The groups are called scannerIssues and dependencyAlerts."
    ),
    "tools.security.unavailable-groups-are-omitted": Requirement(
        "seed §2.6; seed §7", "Security groups that nobody determined are left out."
    ),
    # get-incident-metrics
    "tools.incident.shape": Requirement(
        "seed §2.7", "Both groups optional; in each, the seed's required and optional fields."
    ),
    "tools.incident.units": Requirement(
        "decisions §4.8; seed §2.7", "The schema says seconds for mean times, percent for up time."
    ),
    "tools.incident.unavailable-groups-are-omitted": Requirement(
        "seed §2.7; seed §7", "Incident groups that nobody determined are left out."
    ),
    # get-observability-metrics
    "tools.observability.shape": Requirement(
        "seed §2.8", "The result is the numbers sloCount and monitorCount."
    ),
    "tools.observability.unavailable-is-an-error": Requirement(
        "decisions §4.7", "Unknown counts make an `isError` with the reason and what to do."
    ),
    # get-entity-compliance
    "tools.compliance.metadata-leaves": Requirement(
        "seed §2.9", "`metadata` tells of title, description, tags and owner."
    ),
    "tools.compliance.techdocs-leaf": Requirement(
        "seed §2.9", "`techdocs` tells whether there is a reference to documentation."
    ),
    "tools.compliance.ownership-leaves": Requirement(
        "seed §2.9", "`ownership` tells of owner, group owner and relations."
    ),
    # get-repository-info
    "tools.repository.no-kind-argument": Requirement(
        "seed §4.1", "get-repository-info refuses a `kind` argument."
    ),
    "tools.repository.shape": Requirement(
        "seed §2.10", "File paths, total and the six counts are required, inCatalog is not."
    ),
    "tools.repository.unavailable-is-an-error": Requirement(
        "decisions §4.7", "An unknown repository makes an `isError`, reason and advice included."
    ),
    "tools.repository.limit-on-paths": Requirement(
        "decisions §4.6", "`limit` shortens filePaths while totalFiles stays true."
    ),
    "tools.repository.in-catalog": Requirement(
        "decisions §5.5", "inCatalog: the tree holds a catalog-info file."
    ),
    # get-fact-history and get-changed-facts, which are additions to the nine
    "tools.fact-history.names-the-entity": Requirement(
        "decisions §4.4; decisions §4.6", "get-fact-history takes a name or an entityRef."
    ),
    "tools.fact-history.rows": Requirement(
        "decisions §5.6; decisions §4.6",
        "Each row of history tells time, source, version, facts and why others are unknown.",
    ),
    "tools.fact-history.narrowed": Requirement(
        "decisions §5.6", "Source, names of facts, and the times from and to narrow the rows."
    ),
    "tools.fact-history.drafts-are-marked": Requirement(
        "decisions §5.7", "Rows that a draft wrote are marked, also after it is published."
    ),
    "tools.changed-facts.from-what-to-what": Requirement(
        "decisions §5.6; decisions §4.6",
        "Each change tells time, source, entity, and of each fact from what to what.",
    ),
    "tools.changed-facts.of-the-catalog": Requirement(
        "decisions §4.6",
        "get-changed-facts tells of entities that were added, updated and removed, and of the "
        "catalog's own facts.",
    ),
    "tools.changed-facts.became-unknown": Requirement(
        "decisions §4.7", "A value that became unknown is told as none, with its reason."
    ),
    "tools.changed-facts.kept-is-no-change": Requirement(
        "decisions §5.6", "A value that is kept while a vendor fails is no change."
    ),
    "tools.changed-facts.since": Requirement(
        "decisions §5.6", "`since` is a time, a date or a duration, and never to come."
    ),
    "tools.changed-facts.narrowed": Requirement(
        "decisions §5.6", "A source and a kind narrow the changes."
    ),
    "tools.changed-facts.drafts-are-marked": Requirement(
        "decisions §5.7", "Changes that a draft brought are marked."
    ),
    "tools.history-and-changes.pages": Requirement(
        "decisions §4.6",
        "Both give pages that an agent takes whole; a cursor walks all, each once.",
    ),
    "tools.history-and-changes.long-values": Requirement(
        "decisions §4.6", "Both cut long values short and tell how long they are."
    ),
    # get-entity, find-entities, and what get-all-entities-facts chooses
    "tools.entities.whole": Requirement(
        "decisions §4.6",
        "get-entity tells the owner and how to reach them, relations both ways with totals, the "
        "level in each scorecard and failing checks.",
    ),
    "tools.entities.written-by-others": Requirement(
        "decisions §4.6", "What people wrote stands apart in get-entity, and is bounded."
    ),
    "tools.find.everyday-questions": Requirement(
        "decisions §4.6",
        "Eleven everyday questions about 2,000 components take two calls at most, and 2,000 "
        "tokens.",
    ),
    "tools.find.filters": Requirement(
        "decisions §4.6",
        "find-entities filters by text, kind, type, owner with the groups below, tag, label, "
        "lifecycle, system and predicate.",
    ),
    "tools.find.conditions": Requirement(
        "decisions §4.6",
        "Conditions of checks choose entities, and those that cannot be decided are counted apart.",
    ),
    "tools.find.groups": Requirement("decisions §4.6", "`groupBy` counts entities by a value."),
    "tools.all-facts.chosen": Requirement(
        "decisions §4.6",
        "get-all-entities-facts takes owner, where, count and groupBy; without them the answer "
        "stays as it was.",
    ),
    "tools.all-facts.long-values-and-shared-times": Requirement(
        "decisions §4.6",
        "Chosen facts leave long values out unless named, and tell a time that all share once.",
    ),
    "tools.entities-source": Requirement(
        "decisions §4.6",
        "owner, ownerExists, type, lifecycle, tags and labels are facts, and the same names are "
        "read by conditions.",
    ),
    "endpoint.list-grows-little": Requirement(
        "decisions §4.6",
        "The tools about entities add fewer than 1,500 tokens to the list of tools.",
    ),
    # Why something is unknown
    "unknown.literal-in-typed-leaves": Requirement(
        "seed §7; seed §2.5", "An undetermined typed leaf is the string `unknown`, never absent."
    ),
    "unknown.optional-fields-are-omitted": Requirement(
        "seed §7", "An optional field without data is left out, never null."
    ),
    "unknown.generic-tools-give-reasons": Requirement(
        "decisions §4.7", "The generic tools say why facts of the data source have no value."
    ),
    "unknown.entities-without-facts-are-counted-and-listed": Requirement(
        "decisions §4.7",
        "get-all-entities-facts counts by reason the entities that its source is about and knows "
        "nothing of, and lists them on demand.",
    ),
    "unknown.every-leaf-has-a-reason": Requirement(
        "decisions §4.7",
        "`unknownReasons` has a reason for every literal `unknown`: by path, by group, or `*`.",
    ),
    "unknown.annotation-is-named": Requirement(
        "decisions §4.6", "Where an annotation is the reason, it is named with the value not found."
    ),
    "unknown.omitted-groups-have-a-reason": Requirement(
        "decisions §4.7", "`unknownReasons` has the name of every group left out."
    ),
    "unknown.empty-lists-have-a-reason": Requirement(
        "decisions §4.7", "`unknownReasons` has the path of each list nobody determined."
    ),
    "unknown.reason-words": Requirement(
        "decisions §4.7", "The eleven reasons are a closed list, and the schema shows it."
    ),
    "unknown.not-configured": Requirement(
        "decisions §4.7", "Without the integration the reason is `not-configured`."
    ),
    "unknown.reasons-of-collections": Requirement(
        "decisions §4.7", "What became of a collection decides among the other reasons."
    ),
    "unknown.group-with-unknown-number-is-absent": Requirement(
        "decisions §4.7",
        "One unknown required number makes its optional group absent.",
    ),
    "unknown.collected-at": Requirement(
        "decisions §4.7", "`collectedAt` says for each known group when it was determined."
    ),
}
