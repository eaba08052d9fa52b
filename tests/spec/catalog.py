"""References, entities, and how the catalog is read."""

from .requirement import Requirement

REQUIREMENTS: dict[str, Requirement] = {
    # References
    "ref.canonical-form": Requirement(
        "seed §1; seed §2.12; decisions §1.2", "Answers write a reference `kind:namespace/name`."
    ),
    "ref.all-three-parts-lower-case": Requirement(
        "seed §1; decisions §1.2", "In a reference kind, namespace and name are lower case."
    ),
    "ref.matched-without-case": Requirement(
        "decisions §1.2", "A reference finds its entity in whatever case it is typed."
    ),
    "ref.metadata-keeps-its-case": Requirement(
        "decisions §1.2", "`metadata` comes back in the case it was pushed in."
    ),
    "ref.short-forms": Requirement(
        "decisions §1.2", "`name`, `namespace/name`, `kind:name` do where defaults are known."
    ),
    "ref.default-namespace": Requirement(
        "seed §4.3 rule 5", "An entity without a namespace is addressed under `default`."
    ),
    # Names
    "names.kind-is-strict": Requirement(
        "decisions §1.3", "`kind` follows the catalog reference's pattern and length."
    ),
    "names.namespace-is-strict": Requirement(
        "decisions §1.3", "`metadata.namespace` follows the catalog reference's pattern."
    ),
    "names.api-version-is-strict": Requirement(
        "decisions §1.3", "`apiVersion` follows the catalog reference's pattern."
    ),
    "names.may-hold-spaces-and-printables": Requirement(
        "decisions §1.3", "A pushed name may hold spaces and printable characters."
    ),
    "names.no-slash-or-colon": Requirement(
        "decisions §1.3", "A pushed name with `/` or `:` is refused."
    ),
    "names.no-control-characters": Requirement(
        "decisions §1.3", "A pushed name with an unprintable character is refused."
    ),
    "names.trimmed-and-composed": Requirement(
        "decisions §1.3", "Names lose surrounding blanks and are normalised to NFC."
    ),
    "names.at-most-253-characters": Requirement(
        "decisions §1.3", "A name of 254 characters is refused, one of 253 is not."
    ),
    "names.strict-setting": Requirement(
        "decisions §1.3", '`entity_names = "strict"` applies the reference\'s rule to names.'
    ),
    # What an entity holds
    "entity.api-version": Requirement(
        "seed §2.11; seed §9", "An entity carries an `apiVersion` string of its own."
    ),
    "entity.api-version-is-kept": Requirement(
        "decisions §7", "The `apiVersion` that was pushed is the one that is read."
    ),
    "entity.kind": Requirement("seed §2.11", "An entity carries a `kind` such as `Resource`."),
    "entity.name": Requirement("seed §2.11", "An entity carries `metadata.name`."),
    "entity.description": Requirement(
        "seed §2.11", "`metadata.description` is stored and read as text."
    ),
    "entity.client-annotations-are-kept": Requirement(
        "seed §2.11; decisions §2.6", "Annotations under the client's own keys stay as sent."
    ),
    "entity.spec-owner": Requirement("seed §2.11", "`spec.owner` holds a reference to the owner."),
    "entity.spec-type": Requirement("seed §2.11", "`spec.type` is stored and read as text."),
    "entity.other-fields-are-kept": Requirement(
        "seed §2.11; decisions §2.1", "Further keys under `metadata` and `spec` survive."
    ),
    "entity.has-no-lifecycle-state": Requirement(
        "seed §3", "An entity is there or it is not; no state field is put on it."
    ),
    # Reading
    "catalog.list-entities": Requirement(
        "seed §4.2; decisions §3", "`GET /api/catalog/entities` answers a JSON array of entities."
    ),
    "catalog.list-accepts-json-and-bearer": Requirement(
        "seed §4.2", "The list works with `Accept: application/json` and a bearer token."
    ),
    "catalog.list-filter": Requirement(
        "decisions §3; seed §4.2", "`filter`: OR between repetitions, AND within one value."
    ),
    "catalog.list-fields": Requirement(
        "decisions §3; seed §4.2", "`fields` keeps only the named paths, dotted keys included."
    ),
    "catalog.list-order": Requirement(
        "decisions §3; seed §4.2", "`order` sorts by fields, up or down, lacking values last."
    ),
    "catalog.list-paging": Requirement(
        "decisions §3; seed §4.2", "`limit`, `offset` and `after` page, and `Link` names the next."
    ),
    "catalog.by-name": Requirement(
        "decisions §3", "`/entities/by-name/{kind}/{namespace}/{name}` gives the entity or 404."
    ),
    "catalog.by-uid": Requirement("decisions §3", "`/entities/by-uid/{uid}` gives it or 404."),
    "catalog.by-refs": Requirement(
        "decisions §3", "`by-refs` answers in the order asked, null where there is nothing."
    ),
    "catalog.by-refs-trailing-slash": Requirement(
        "decisions §3", "`/entities/by-refs/` is the same call, without a redirect."
    ),
    "catalog.read-denied-is-403": Requirement(
        "decisions §3", "Reads without the permission get 403 with its name, not empty lists."
    ),
    "catalog.relations-both-directions": Requirement(
        "decisions §3", "What `spec` names is a relation on both entities."
    ),
    "catalog.relations-in-the-push-transaction": Requirement(
        "decisions §3", "Relations are right in the first read after a push."
    ),
    # The rest of the catalog interface
    "catalog.by-query": Requirement(
        "decisions §3", "`by-query` answers pages with cursors and counts."
    ),
    "catalog.by-query-post": Requirement(
        "decisions §3", "`by-query` also takes predicates in a POST."
    ),
    "catalog.facets": Requirement("decisions §3", "`entity-facets` counts the values of fields."),
    "catalog.validate-entity": Requirement(
        "decisions §3", "`validate-entity` applies the strict kind schemas."
    ),
    "catalog.ancestry": Requirement("decisions §3", "An entity's ancestry can be asked for."),
    "catalog.delete-by-uid": Requirement("decisions §3", "`DELETE by-uid` removes an entity."),
    "catalog.refresh": Requirement("decisions §3", "`/refresh` queues a collection of one entity."),
    "catalog.locations-are-empty": Requirement("decisions §3", "The list of locations is empty."),
    "catalog.location-writes-are-501": Requirement(
        "decisions §3", "Writing or analysing a location is 501."
    ),
}
