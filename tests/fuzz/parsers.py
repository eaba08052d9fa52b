"""Functions whose names say that they read something, and why they need no target."""

from typing import Final

_ROWS: Final = "reads rows of the database, which the service wrote itself"
_CALLS: Final = "asks by calls, whose answers msgspec checks"
_DOCUMENTS: Final = "calls the parser of stored definitions, which has a target"
_FILES: Final = "reads the file, whose content goes to cli.documents.parse"

NO_PARSERS: Final[dict[str, str]] = {
    "api.mcp.resources.read": "matches an address, and calls a tool with its parts",
    "auth.oauth.client_documents.decoded": _CALLS,
    "auth.oauth.consents.decoded": _ROWS,
    "auth.token_reach.decoded": _ROWS,
    "catalog.store.collectable.read": _ROWS,
    "catalog.store.membership.read_groups": _ROWS,
    "checks.submissions.check_documents.read_check": "calls parse_check, which has a target",
    "checks.submissions.check_documents.read_scorecard": "calls scorecard.parse, as above",
    "checks.definitions.dependencies.read_by": "follows the conditions of checks, which are parsed",
    "checks.levels.grader.decoded": _ROWS,
    "checks.states.state_store.read": _ROWS,
    "datasources.connection_store.read": _ROWS,
    "datasources.define.read": "calls datasources.custom.definition.parse and looks connections up",
    "definitions.documents.read": "calls the parser of what is defined",
    "cli.checks.files.read": _FILES,
    "cli.checks.review_comment.read": "passes the text of a file on as it is",
    "cli.definition_files.read": _FILES,
    "cli.documents.read": _FILES,
    "cli.sources.files.read": _FILES,
    "observability.service_status.read": _ROWS,
    "importers.aws.organization.read": _CALLS,
    "importers.catalog.peer.read": _CALLS,
    "importers.mapping.parsed": "calls parsers of datasources.custom, which have targets",
    "importers.catalog_info.reader.read": "calls importers.catalog_info.documents.parsed",
    "importers.github.organization.read": _CALLS,
    "importers.github.teams.read_people": _CALLS,
    "importers.gitea.organization.read": _CALLS,
    "importers.gitea.people.read_organization_members": _CALLS,
    "importers.gitea.people.read_teams": _CALLS,
    "importers.gitlab.group.read": _CALLS,
    "importers.gitlab.people.read_groups": _CALLS,
    "importers.gitlab.people.read_members": _CALLS,
    "importers.gitlab.roots.read_roots": _CALLS,
    "importers.kubernetes.cluster.read": _CALLS,
    "importers.importer_store.opened": _ROWS,
    "importers.ldif.directory.read": "calls importers.ldif.records.parsed",
    "operations.doctor.configuration.read": "calls settings.loader.load",
    "operations.doctor.key.read": "looks whether there is a key",
    "operations.import_snapshot.read_once": "calls the reader of an importer",
    "scheduling.retention_clock.read": _ROWS,
    "web.checks.check_list.read": _DOCUMENTS,
    "web.checks.scorecard_list.read": _DOCUMENTS,
    "tools.entities.conditions.read": "calls checks.rules.condition.read, which has a target",
    "webhooks.digest_store.opened": "calls auth.encryption.opened, which has a target",
    "outbound.calls.decoded": "decodes JSON with msgspec; targets of vendors begin before it",
    "integrations.file_tree.read": "asks by calls or by a clone, whose answers are read elsewhere",
    "integrations.git.client.read": "calls the program git, whose words integrations.git reads",
}
