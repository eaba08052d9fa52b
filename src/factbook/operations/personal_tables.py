"""The columns in which a reference, a name or an address of a person may be left.

`tests/operations/test_erasure.py` fails for a column of text that is neither here nor among those
that hold nothing personal. docs/decisions/people.md#erasure has the reasons.
"""

from typing import Final

from factbook.storage.personal_columns import PersonalColumns as Personal

_DEFINITION: Final = ("draft", "published", "created_by", "updated_by", "published_by")
_VERSION: Final = ("document", "published_by")

# Rows that stay: a pseudonym takes the place of the person.
REPLACED: Final = (
    Personal("audit records", "audit", ("at", "id"), ("actor", "object", "detail", "address")),
    Personal("events", "events", ("id",), ("about", "content")),
    Personal("webhook retries", "webhook_retries", ("webhook_id", "event_id"), ("body", "error")),
    Personal("sets", "sets", ("id",), ("updated_by",)),
    Personal("entities", "entities", ("id",), ("updated_by",)),
    Personal("revisions", "revisions", ("set_id", "number"), ("created_by",)),
    Personal(
        "earlier documents",
        "revision_changes",
        ("set_id", "number", "ref"),
        ("document",),
        own="ref",
    ),
    Personal(
        "facts",
        "facts_latest",
        ("source_id", "entity_id"),
        ("facts", "reasons", "kept"),
        own="entity_id",
    ),
    Personal(
        "fact history",
        "facts_history",
        ("source_id", "entity_id", "written_at"),
        ("facts", "reasons"),
        own="entity_id",
    ),
    Personal("requests for facts", "collection_requests", ("entity_id",), ("requested_by",)),
    Personal("work to do", "batches", ("run_id", "number"), ("work",)),
    Personal("work given up", "given_up_batches", ("run_id", "number"), ("work",)),
    Personal("runs", "runs", ("id",), ("error",)),
    Personal("tokens of others", "tokens", ("id",), ("name", "created_by"), own="owner"),
    Personal("accounts of others", "people", ("ref",), ("created_by",), own="ref"),
    Personal(
        "account links of others", "account_links", ("scim_id",), ("confirmed_by",), own="ref"
    ),
    Personal("SCIM users and groups", "scim_resources", ("id",), ("document", "problem"), own="id"),
    Personal("data sources", "data_sources", ("id",), _DEFINITION, counter="data_source"),
    Personal(
        "versions of data sources", "data_source_versions", ("source_id", "version"), _VERSION
    ),
    Personal("connections", "connections", ("name",), ("options", "created_by", "updated_by")),
    Personal(
        "importers",
        "importers",
        ("id",),
        ("name", "options", "created_by", "updated_by"),
        counter="importers",
    ),
    Personal(
        "parts of imports", "import_parts", ("importer", "part"), ("problems", "held", "spared")
    ),
    Personal("import runs", "import_runs", ("id",), ("error",)),
    Personal("checks", "checks", ("id",), (*_DEFINITION, "pending"), counter="checks"),
    Personal("versions of checks", "check_versions", ("check_id", "version"), _VERSION),
    Personal("changes of results", "check_changes", ("id",), ("why",), own="entity_id"),
    Personal("counts of results", "check_counts", ("slot", "owner"), ("owner",)),
    Personal("counts of results by day", "check_days", ("check_id", "owner", "day"), ("owner",)),
    Personal("scorecards", "scorecards", ("id",), (*_DEFINITION, "pending"), counter="checks"),
    Personal("versions of scorecards", "scorecard_versions", ("scorecard_id", "version"), _VERSION),
    Personal(
        "counts of levels",
        "scorecard_counts",
        ("slot", "owner", "system", "kind", "level"),
        ("owner",),
    ),
    Personal(
        "counts of levels by day", "scorecard_days", ("scorecard_id", "owner", "day"), ("owner",)
    ),
    Personal(
        "exemptions",
        "exemptions",
        ("id",),
        ("entity_ref", "reason", "link", "requested_by", "decided_by", "comment"),
    ),
    Personal("digests", "digests", ("id",), ("created_by", "error"), own="owner"),
    Personal("webhooks", "webhook_endpoints", ("id",), ("created_by", "error")),
    Personal("webhooks of an earlier release", "webhooks", ("id",), ("created_by", "error")),
)
