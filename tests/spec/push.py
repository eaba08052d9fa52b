"""The push interface: sets, single entities, revisions, conflicts, limits."""

from .requirement import CATALOG_SOURCES, Requirement

REQUIREMENTS: dict[str, Requirement] = {
    # Paths
    "push.path": Requirement(
        "seed §4.3; decisions §1.1; decisions §2",
        "Sets are put at `/api/catalog/factbook-entities/sets/{set_id}`.",
    ),
    "push.word-is-a-setting": Requirement(
        "decisions §1.1", "`push_word` changes the product word in the path."
    ),
    "push.aliases": Requirement(
        "decisions §1.1", "Words in `push_aliases` reach the same interface; at first none do."
    ),
    "push.foreign-word-is-404": Requirement(
        "decisions §1.1", "Another path word is 404, and the message tells the right path."
    ),
    "push.annotations-carry-the-configured-word": Requirement(
        "decisions §1.1", "A changed `push_word` also changes the location annotations."
    ),
    "push.annotation-domain-is-a-setting": Requirement(
        "decisions §1.1", "`annotation_domain` (`factbook` at first) prefixes our annotation."
    ),
    # Replacing a set
    "push.request-body": Requirement(
        "seed §4.3", "The body is an object whose `items` is an array of entities."
    ),
    "push.creates-the-set": Requirement(
        "seed §1; decisions §2", "A put to a set id nobody used makes that set."
    ),
    "push.replaces-whole-set": Requirement(
        "seed §1; seed §4.3 rule 1; decisions §2", "What a push leaves out is gone from the set."
    ),
    "push.updates-provided-entities": Requirement(
        "seed §4.3 rule 2", "A second push to the id changes the entities it brings."
    ),
    "push.omitting-deletes": Requirement(
        "seed §4.3 rule 3", "Sending the set without an entity is how that entity is deleted."
    ),
    "push.visible-immediately": Requirement(
        "seed §4.3 rule 4; decisions §2", "A read right after the answer sees the pushed entities."
    ),
    "push.one-transaction": Requirement(
        "decisions §2", "A reader sees the old set or the new one, never a mixture."
    ),
    "push.sets-at-the-same-time": Requirement(
        "decisions §2; decisions §3",
        "Sets that are pushed at the same time on PostgreSQL do not wait for each other, and no "
        "relation between their entities is lost.",
    ),
    "push.set-id-is-the-clients": Requirement(
        "seed §4.3", "The client picks a descriptive set id, and it comes back unchanged."
    ),
    "push.resending-keeps-in-sync": Requirement(
        "seed §1", "Sending the same content again and again is safe and changes nothing."
    ),
    "push.content-length-is-optional": Requirement(
        "seed §4.3", "A body with `Content-Length` and a chunked one are both taken."
    ),
    "push.dry-run-writes-nothing": Requirement(
        "decisions §2", "With `dryRun=true` the put validates, tells the changes, stores nothing."
    ),
    "push.as-the-seed-writes-it": Requirement(
        "seed §4.3", "curl with the seed's headers and a body of items pushes a set."
    ),
    # The other calls
    "sets.list": Requirement(
        "decisions §2", "`GET /sets` shows id, item count, revision, who and when for each set."
    ),
    "sets.get": Requirement("decisions §2", "`GET /sets/{set_id}` shows the set as the put did."),
    "sets.get-pages": Requirement("decisions §2", "Reading a set takes `limit` and `cursor`."),
    "sets.delete": Requirement("decisions §2", "Deleting a set is a push of no items."),
    "sets.revisions": Requirement("decisions §2", "A set's revisions say what each push changed."),
    "sets.restore": Requirement(
        "decisions §2", "Restoring puts an earlier content back under a new revision number."
    ),
    "sets.add-one-entity": Requirement(
        "decisions §2", "A POST to a set adds or updates one entity and leaves the others."
    ),
    "entities.list-of-a-set": Requirement(
        "decisions §2", "`GET /entities?set=` lists the pushed entities, of one set if asked."
    ),
    "entities.by-id": Requirement("decisions §2", "A pushed entity is read by its UUID."),
    "entities.by-ref": Requirement("decisions §2", "A pushed entity is read by its reference."),
    "entities.by-ref-encoded-or-decoded": Requirement(
        "decisions §1.3", "by-ref takes the reference as one encoded segment and decoded."
    ),
    "entities.delete-by-id": Requirement("decisions §2", "One pushed entity is deleted by UUID."),
    "entities.outside-any-set": Requirement(
        "decisions §2", "POST to `/entities` stores an entity whose `set` is null."
    ),
    # Validation
    "validation.all-or-nothing": Requirement(
        "decisions §2.1", "One bad item and nothing of the request is written."
    ),
    "validation.every-mistake-at-once": Requirement(
        "decisions §2.1; seed §7", "A 400 lists all mistakes of all items together."
    ),
    "validation.json-path-of-each-mistake": Requirement(
        "decisions §2.1", "Each mistake has its path, like `items[3].metadata.name`."
    ),
    "validation.envelope-refuses": Requirement(
        "decisions §2.1", "A missing or wrong apiVersion, kind or metadata.name refuses the push."
    ),
    "validation.metadata-types-refuse": Requirement(
        "decisions §2.1", "Labels, annotations, tags or links of a wrong type refuse the push."
    ),
    "validation.unknown-kinds-are-kept": Requirement(
        "decisions §2.1", "An entity of a kind nobody knows is stored."
    ),
    "validation.foreign-metadata-is-kept": Requirement(
        "decisions §2.1", "Metadata keys outside the model are stored as they are."
    ),
    "validation.missing-spec-field-is-stored": Requirement(
        "decisions §2.1", "A known kind that lacks a spec field is stored all the same."
    ),
    "validation.problem-in-status-items": Requirement(
        "decisions §2.1", "The lacking spec field is told in the entity's `status.items`."
    ),
    "validation.problem-in-warnings": Requirement(
        "decisions §2.1", "The lacking spec field is told in the answer's `warnings`."
    ),
    "validation.read-entity-can-be-pushed-back": Requirement(
        "decisions §2.1", "uid, etag, relations and status in a pushed entity go, with a warning."
    ),
    "validation.duplicates-are-400": Requirement(
        "decisions §2.2", "One reference twice in a request: 400 with both positions."
    ),
    # Conflicts
    "conflict.is-409": Requirement(
        "decisions §2.3", "Pushing a reference that another set holds is 409."
    ),
    "conflict.names-refs-and-owners": Requirement(
        "decisions §2.3", "The 409 names every contested reference and who holds it."
    ),
    "conflict.writes-nothing": Requirement(
        "decisions §2.3", "After a conflict both sets are what they were."
    ),
    "conflict.take": Requirement(
        "decisions §2.3", "`onConflict=take` moves the contested references into this set."
    ),
    "conflict.with-a-source": Requirement(
        "decisions §2.3", "An owner that is a source is named alike.", later=CATALOG_SOURCES
    ),
    # What stays and what changes
    "unchanged.keeps-its-stamps": Requirement(
        "decisions §2.4", "An unchanged entity keeps id, etag, updatedAt and updatedBy."
    ),
    "item.id-is-the-uid": Requirement(
        "seed §2.12; decisions §2.4", "`id` is a UUID of ours and equals `metadata.uid`."
    ),
    "item.id-survives-resends": Requirement(
        "decisions §2.4", "However often and changed it is sent, an entity keeps its id."
    ),
    "response.keeps-request-order": Requirement(
        "decisions §2.4", "Items are answered in the order they were sent."
    ),
    "response.is-streamed": Requirement(
        "decisions §2.4", "The answer to a large push is sent in pieces, not built whole."
    ),
    "revisions.only-for-changes": Requirement(
        "decisions §2.4", "A push that changes nothing makes no revision."
    ),
    "revisions.store-changed-documents-only": Requirement(
        "decisions §2.4", "A revision's rows are the documents that changed."
    ),
    "revisions.are-trimmed": Requirement(
        "decisions §2.4", "Revisions past 50 or past 30 days go; both are settings."
    ),
    "removed.vanishes-from-every-read": Requirement(
        "decisions §2.4", "No read, and no tool, shows an entity once it is removed."
    ),
    "removed.id-and-facts-kept-for-a-while": Requirement(
        "decisions §2.4", "Pushed again within 7 days, an entity has its old id and facts."
    ),
    "removed.forgotten-after-the-keep-time": Requirement(
        "decisions §2.4", "After the keep time, a setting, id and facts are gone for good."
    ),
    "sets.empty-is-not-listed": Requirement(
        "decisions §2.4", "A set without items is absent from the list of sets."
    ),
    "sets.empty-can-be-restored": Requirement(
        "decisions §2.4", "A set that was emptied can be restored from its revisions."
    ),
    # Guard rails
    "guard.off-by-default": Requirement(
        "decisions §2.5", "Unasked, nothing stops a push that removes everything."
    ),
    "guard.max-removals": Requirement(
        "decisions §2.5", "`maxRemovals=N` answers 409 to a push that would remove more."
    ),
    "guard.max-removals-percent": Requirement(
        "decisions §2.5", "`maxRemovals` takes a share of the set, `N%`."
    ),
    "guard.if-match": Requirement(
        "decisions §2.5", "`If-Match` with an older revision is 412, and nothing is written."
    ),
    "guard.etag": Requirement("decisions §2.5", "The answer's `ETag` is the set's revision."),
    # Annotations
    "annotations.entity-set": Requirement(
        "seed §2.12; decisions §2.6", "`<domain>/entity-set` holds the set's id."
    ),
    "annotations.managed-by-location": Requirement(
        "seed §2.12; decisions §2.6", "managed-by-location points at the entity's by-ref path."
    ),
    "annotations.managed-by-origin-location": Requirement(
        "seed §2.12; decisions §2.6", "managed-by-origin-location points at the entities path."
    ),
    "annotations.ref-is-one-encoded-segment": Requirement(
        "decisions §1.3; decisions §2.6", "The annotation percent-encodes the whole reference."
    ),
    "annotations.clients-values-are-overruled": Requirement(
        "decisions §2.6", "A client's value for one of the three is replaced by ours."
    ),
    "annotations.namespace-is-not-written": Requirement(
        "decisions §2.6", "An entity sent without a namespace is stored without one."
    ),
    # Response
    "response.body": Requirement(
        "seed §4.3; decisions §2.7", "A push answers the set id and its `items`."
    ),
    "item.entity-is-as-stored": Requirement(
        "seed §2.12", "`entity` is the stored document, our annotations included."
    ),
    "item.entity-ref": Requirement(
        "seed §2.12; seed §4.3 rule 5",
        "`entityRef` reads `resource:default/<name>` for a resource.",
    ),
    "item.raw-data-equals-entity": Requirement("seed §2.12", "`rawData` has what `entity` has."),
    "item.set": Requirement("seed §2.12", "Each item names its set."),
    "item.updated-by": Requirement(
        "seed §2.12; decisions §2.7", "`updatedBy` is the reference of the token's user."
    ),
    "item.source-is-api-entity": Requirement(
        "seed §2.12; decisions §2.7", "`source` is `api-entity` for whatever was pushed."
    ),
    "item.updated-at": Requirement(
        "seed §2.12; decisions §2.7", "`updatedAt` is ISO 8601, milliseconds and `+00:00`."
    ),
    "response.revision": Requirement("decisions §2.7", "The answer tells the set's `revision`."),
    "response.changes": Requirement(
        "decisions §2.7", "`changes` counts added, updated, removed and unchanged entities."
    ),
    "response.warnings": Requirement("decisions §2.7", "The answer has a list of `warnings`."),
    # Limits
    "limits.body-is-413": Requirement(
        "decisions §2.8; seed §8",
        "A pushed body past the limit is 413: 128 MB by default.",
    ),
    "limits.items-is-413": Requirement(
        "decisions §2.8; seed §8", "A set of more than 100,000 items is 413."
    ),
    "push.no-invisible-names": Requirement(
        "decisions §1.3; decisions §2.8",
        "A new name or set id holds no character that nobody sees.",
    ),
    "limits.set-id-is-400": Requirement(
        "decisions §2.8; seed §8", "A set id that is empty, over 128, unprintable or has `/`: 400."
    ),
    "limits.large-entity-is-400": Requirement(
        "decisions §2.8",
        "An entity with more relations, labels, annotations, tags, links or values than it may "
        "have is 400 with the path of each; one that many point at is not refused.",
    ),
    "limits.large-entities-are-linear": Requirement(
        "decisions §2.8",
        "A write costs in proportion to the relations that come, go or are shown again.",
    ),
    "limits.one-entity-blocks-nobody": Requirement(
        "decisions §2.8", "However large an entity is, it is written in pieces of bounded size."
    ),
    "limits.nesting-is-400": Requirement("decisions §2.8; seed §8", "JSON deeper than 64 is 400."),
    "limits.rate-is-429": Requirement(
        "decisions §2.8; seed §8", "Too many calls of a token are 429 with `Retry-After`."
    ),
    "limits.are-settings": Requirement("decisions §2.8", "Each of the limits can be configured."),
    "limits.default-in-the-refusal": Requirement(
        "decisions §2.8", "Every refusal for a limit states that limit's default."
    ),
}
