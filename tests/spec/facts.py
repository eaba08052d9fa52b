"""Data sources and facts: their description, their types, their storage, their age."""

from .requirement import Requirement

REQUIREMENTS: dict[str, Requirement] = {
    # How a data source is described
    "source.id": Requirement("seed §2.1", "Every source has a string `id`."),
    "source.title": Requirement("seed §2.1", "Every source has a string `title`."),
    "source.optional-strings": Requirement(
        "seed §2.1", "description, createdAt and updatedAt are strings where present."
    ),
    "source.draft": Requirement("seed §2.1", "`draft` is a boolean where present."),
    "source.version-is-semantic": Requirement(
        "decisions §5.1; seed §2.1", "`version` is a semantic version."
    ),
    "source.cadence-is-cron": Requirement(
        "decisions §5.1; seed §2.1", "`cadence` is a cron line of five fields."
    ),
    "source.lifecycle": Requirement(
        "decisions §5.1; seed §2.1", "`lifecycle` is a number of items or a time to live."
    ),
    "source.timeout": Requirement("decisions §5.1; seed §2.1", "`timeout` is a duration object."),
    "source.handler-definition": Requirement(
        "seed §2.1; decisions §5.1", "`handlerDefinition` is a type and a config with its id."
    ),
    "source.handler-definition-hides-the-rest": Requirement(
        "decisions §5.1", "Nothing else of a source's configuration is shown."
    ),
    "source.schema": Requirement(
        "seed §1; seed §2.1", "`schema` gives each fact one of seven types, and may describe it."
    ),
    "source.schema-metadata-key": Requirement(
        "seed §2.1; decisions §5.2", "A fact's `metadata.key` is a string where present."
    ),
    # Which entities a source covers
    "filter.or-between-objects": Requirement(
        "decisions §5.1; seed §2.1",
        "An entity passes `entityFilter` when it fits one of its objects.",
    ),
    "filter.and-inside-an-object": Requirement(
        "decisions §5.1", "Within one filter object every condition has to hold."
    ),
    "filter.or-in-a-list-value": Requirement(
        "decisions §5.1", "A list as a condition's value fits when one of its values does."
    ),
    "filter.dotted-paths": Requirement(
        "decisions §5.1", "A condition reaches into an entity by a dotted path."
    ),
    "filter.exists-marker": Requirement(
        "decisions §5.1", "The marker `exists` asks only that the path is there."
    ),
    "filter.as-json-string": Requirement(
        "decisions §5.1", "`entityFilter` may come as a JSON string."
    ),
    "facts.tracked": Requirement(
        "decisions §5.4", "Tracked: the filter fits and the source has a value stored."
    ),
    # Builtin and custom sources
    "sources.the-catalogs-three": Requirement(
        "decisions §5.2", "entity-metadata, entity-ownership and techdocs are always there."
    ),
    "sources.unconfigured-are-not-listed": Requirement(
        "decisions §5.2; seed §1", "A source without configuration is not discovered or counted."
    ),
    "sources.configured-integrations-are-listed": Requirement(
        "decisions §5.2", "A configured integration is listed by its readable id."
    ),
    "sources.custom-facts-by-their-names": Requirement(
        "decisions §5.2", "Custom facts go by the names their author gave."
    ),
    "sources.draft-collects-on-demand": Requirement(
        "decisions §5.7", "A draft runs only when told to."
    ),
    "sources.draft-facts-are-marked": Requirement(
        "decisions §5.7", "Facts of a draft say that they are."
    ),
    # Sources that users define
    "sources.defined-by-users": Requirement(
        "decisions §5.2; decisions §6.2", "Sources are defined, shown and deleted over REST."
    ),
    "sources.draft-until-published": Requirement(
        "decisions §5.7", "What is put is a draft until it is published."
    ),
    "sources.every-problem-is-named": Requirement(
        "decisions §5.1; decisions §6.4", "A definition is refused with each problem and its path."
    ),
    "sources.ids-are-not-taken-twice": Requirement(
        "decisions §5.2", "No user's source has the id of another one, or of a builtin one."
    ),
    "sources.the-same-document-changes-nothing": Requirement(
        "decisions §5.1", "A document that says what is there changes nothing."
    ),
    "sources.version-says-what-changed": Requirement(
        "decisions §5.1",
        "Lost facts raise the major version, new ones the minor, others the patch.",
    ),
    "sources.breaking-changes-need-force": Requirement(
        "decisions §5.1; decisions §5.3", "A removed or retyped fact is published by force alone."
    ),
    "sources.run-on-demand": Requirement(
        "decisions §5.7; decisions §6.2", "A run of a source is begun, and its runs are listed."
    ),
    "sources.deleted-with-its-facts": Requirement(
        "decisions §5.6", "A deleted source leaves neither facts nor history behind."
    ),
    "sources.annotations-choose-among-the-configured": Requirement(
        "decisions §5.8", "Annotations select among configured hosts alone."
    ),
    "sources.credential-stays-with-its-host": Requirement(
        "decisions §5.8", "A credential is sent to its own host and no other."
    ),
    # Values
    "facts.types-are-checked": Requirement(
        "decisions §5.3; seed §2.1", "A fact's value is checked against its declared type."
    ),
    "facts.wrong-type-is-no-value-with-a-reason": Requirement(
        "decisions §5.3", "A value of another type is stored as none, with why, never bent to fit."
    ),
    "facts.timestamp-is-the-last-good-write": Requirement(
        "decisions §5.4; seed §2.3; seed §2.4", "`timestamp` is when facts were last written well."
    ),
    "facts.never-collected-is-empty": Requirement(
        "decisions §5.4", "An entity not collected yet has `facts: {}` and no timestamp."
    ),
    "facts.pushed-facts": Requirement("decisions §6.2", "Facts can be pushed to a source."),
    "facts.pushed-to-push-sources-alone": Requirement(
        "decisions §5.2; decisions §6.2", "Builtin and collected sources take no pushed facts."
    ),
    "facts.pushed-problems-are-listed": Requirement(
        "decisions §5.3", "What is wrong with a pushed item is listed, and the rest is stored."
    ),
    "facts.pushes-are-bounded": Requirement(
        "seed §8; decisions §6.2", "A push of facts has 1,000 items at most, and a largest size."
    ),
    "facts.pushes-can-be-repeated": Requirement(
        "decisions §5.6", "The same facts pushed again for the same time change nothing."
    ),
    "facts.older-pushes-are-history-alone": Requirement(
        "decisions §5.4; decisions §5.6", "Facts older than the latest ones enter history alone."
    ),
    "facts.latest-facts-over-rest": Requirement(
        "decisions §5.4; decisions §5.6", "The latest facts of any source are read over REST."
    ),
    # The catalog's own facts
    "facts.catalog-facts-are-current": Requirement(
        "decisions §5.5", "The catalog's own facts are those of the moment of the read."
    ),
    "facts.other-sets-change-relations": Requirement(
        "decisions §5.5", "Another set's push can turn `hasRelationships` at once."
    ),
    "facts.catalog-facts-sampled-daily": Requirement(
        "decisions §5.5", "The catalog's own facts enter the history once a day."
    ),
    "facts.metadata-has-owner": Requirement(
        "decisions §5.5", "metadata.hasOwner asks whether `spec.owner` is set."
    ),
    "facts.ownership-has-owner": Requirement(
        "decisions §5.5", "ownership.hasOwner asks for an ownedBy relation, its target or none."
    ),
    "facts.ownership-owner-exists": Requirement(
        "decisions §5.5", "ownership.ownerExists asks whether that target is in the catalog."
    ),
    "facts.has-group-owner": Requirement(
        "decisions §5.5", "hasGroupOwner asks whether the owner is of kind group."
    ),
    "facts.has-relationships": Requirement(
        "decisions §5.5", "hasRelationships asks for a relation other than ownedBy."
    ),
    # Storage
    "facts.latest-is-one-row": Requirement(
        "decisions §5.6", "The latest facts are one row for each source and entity."
    ),
    "facts.history-is-append-only": Requirement(
        "decisions §5.6", "History gains rows and never changes what one says."
    ),
    "facts.history-tells-changes-once": Requirement(
        "decisions §5.6", "What is found again unchanged is no new row; its confirmation is kept."
    ),
    "facts.history-is-trimmed-by-lifecycle": Requirement(
        "decisions §5.6", "A sweep of its own trims the history to the source's lifecycle."
    ),
    "facts.history-over-rest": Requirement(
        "decisions §5.6", "The history of an entity, of any sources, is read newest first."
    ),
    "facts.history-is-paged": Requirement(
        "decisions §5.6; seed §8", "Pages of history hold every row once."
    ),
    "facts.history-keeps-the-version": Requirement(
        "decisions §5.6; decisions §5.1", "History keeps the version of the source that wrote it."
    ),
    "facts.changes-from-history": Requirement(
        "decisions §5.6; seed §6", "What changed since some time is told from the history."
    ),
    # Telling others
    "facts.changes-are-announced": Requirement(
        "seed §6", "Changes can be followed from outside; the seed has no events."
    ),
}
