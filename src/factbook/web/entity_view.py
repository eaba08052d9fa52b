"""Shared parts of entity pages: frame, description, links to other systems, and relations."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from factbook.catalog import validation
from factbook.catalog.kinds import RELATIONS
from factbook.catalog.ref import EntityRef
from factbook.catalog.store import browse, stored_entities
from factbook.catalog.store.stored_entities import DisplayName, EntityDetail
from factbook.http.requests import Reply, run_offloaded
from factbook.integrations import catalog
from factbook.storage import Database
from factbook.web import formats
from factbook.web.formats import get_ref_name, make_entity_path, make_natural_key
from factbook.web.pages import Handler, PageContext

_ITEMS = 20  # shown per list in the spec
_ENTRIES = 200  # annotations, labels, links and tags
_LONG = 240  # characters; longer texts are folded
_LONGEST = 20_000  # characters shown per field

_HEAD = frozenset({"type", "lifecycle", "owner"})  # shown in the page header
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w.-]+", re.ASCII)


class Point(NamedTuple):
    """A compliance fact of the catalog, with its meaning, and the fix if it is false."""

    source: str
    fact: str
    title: str
    fix: str

    def is_met(self, compliance: int) -> bool:
        """True if an entity with these compliance bits meets it."""
        facts = msgspec.json.decode(
            catalog.encode_catalog_facts(self.source, compliance), type=dict[str, bool]
        )
        return facts[self.fact]


# In the order of the tool get-entity-compliance.
POINTS: Final = (
    Point("entity-metadata", "hasTitle", "Has a title", "Give it one in metadata.title."),
    Point(
        "entity-metadata",
        "hasDescription",
        "Has a description",
        "Say in metadata.description what it is for.",
    ),
    Point("entity-metadata", "hasTags", "Has tags", "Name at least one in metadata.tags."),
    Point("entity-metadata", "hasOwner", "Names an owner", "Name a group or a user in spec.owner."),
    Point(
        "techdocs",
        "hasTechdocsRef",
        "Has documentation",
        "Add the annotation backstage.io/techdocs-ref.",
    ),
    Point(
        "entity-ownership",
        "hasOwner",
        "Owner is a reference",
        "Make spec.owner a reference, such as group:default/team.",
    ),
    Point(
        "entity-ownership",
        "hasGroupOwner",
        "Owned by a group",
        "Name a group rather than a user in spec.owner.",
    ),
    Point(
        "entity-ownership",
        "hasRelationships",
        "Related to others",
        "Name its system, its APIs or what it depends on in spec.",
    ),
)
# Only for a single entity, because it needs a lookup of the owner.
OWNER_EXISTS: Final = Point(
    "entity-ownership",
    "ownerExists",
    "Owner is in the catalog",
    "Push the owner, or name an existing one in spec.owner.",
)


def list_compliance_points(kind: str | None, points: Sequence[Point] = POINTS) -> list[Point]:
    """The points for entities of a kind, None for any; groups and users have no owner."""
    is_owned = kind is None or any(one.type == "ownedBy" for one in RELATIONS.get(kind, ()))
    return [point for point in points if is_owned or "wner" not in point.fact]


class EntityLink(NamedTuple):
    """A link of the entity; `href` is None if the address isn't a web page."""

    title: str
    url: str
    href: str | None


class Part(NamedTuple):
    """A value of the spec: its text, its link, and flags for folded and cut text."""

    text: str
    href: str | None = None
    folded: bool = False
    cut: bool = False


class SpecField(NamedTuple):
    """A field of the spec, its values, and the number of values not shown."""

    label: str
    parts: list[Part]
    left: int

    @property
    def is_long(self) -> bool:
        """True if it needs a line of its own."""
        return any(part.folded for part in self.parts)


class CompliancePoint(NamedTuple):
    """A compliance point; `fix` is the advice if it is not met."""

    title: str
    met: bool
    fix: str
    path: str


class About(NamedTuple):
    """Description of an entity."""

    description: str
    tags: list[str]
    links: list[EntityLink]
    labels: list[tuple[str, str]]
    annotations: list[tuple[str, str, str | None]]
    fields: list[SpecField]
    long_fields: list[SpecField]
    points: list[CompliancePoint]
    problems: list[str]

    @property
    def met(self) -> int:
        """Number of compliance points met."""
        return sum(check.met is True for check in self.points)


def get_spec(entity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec; for people and groups, with the members of `profile` merged in."""
    spec: Mapping[str, Any] = entity.get("spec") or {}
    profile = spec.get("profile")
    if entity["kind"].lower() not in {"user", "group"} or not isinstance(profile, dict):
        return spec
    return {**profile, **{name: value for name, value in spec.items() if name != "profile"}}


def get_email(entity: Mapping[str, Any]) -> str:
    """The email address in the profile of a person or group; "" if missing or invalid."""
    found = get_spec(entity).get("email")
    if entity["kind"].lower() not in {"user", "group"} or not isinstance(found, str):
        return ""
    return found if len(found) <= _LONG and _EMAIL.fullmatch(found) else ""


def describe_entity(shown: EntityDetail, entity: Mapping[str, Any], told: Collection[str]) -> About:
    """Describe an entity as the catalog shows it, without links that the page already shows."""
    metadata: Mapping[str, Any] = entity["metadata"]
    spec, email = get_spec(entity), get_email(entity)
    ref = shown.stored.ref
    kind, namespace = ref.partition(":")[0], ref.partition(":")[2].partition("/")[0]
    fields = [
        _make_spec_field(kind, namespace, name, spec[name])
        for name in spec
        if not (name in _HEAD and isinstance(spec[name], str)) and not (email and name == "email")
    ]
    return About(
        description=metadata.get("description") or "",
        tags=list(metadata.get("tags") or ())[:_ENTRIES],
        links=[link for link in _list_links(metadata) if link.href not in told],
        labels=list((metadata.get("labels") or {}).items())[:_ENTRIES],
        annotations=[
            (name, text, formats.get_external_url(text))
            for name, text in list((metadata.get("annotations") or {}).items())[:_ENTRIES]
        ],
        fields=[field for field in fields if not field.is_long],
        long_fields=[field for field in fields if field.is_long],
        points=_check_compliance_points(shown, kind),
        problems=[item["message"] for item in (entity.get("status") or {}).get("items", ())],
    )


def _list_links(metadata: Mapping[str, Any]) -> list[EntityLink]:
    return [
        EntityLink(
            link.get("title") or link["url"], link["url"], formats.get_external_url(link["url"])
        )
        for link in list(metadata.get("links") or ())[:_ENTRIES]
    ]


def _make_spec_field(kind: str, namespace: str, name: str, value: Any) -> SpecField:
    values = value if isinstance(value, list) else [value]
    target = next((field for field in RELATIONS.get(kind, ()) if field.name == name), None)
    parts, room = list[Part](), _LONGEST
    for one in values[:_ITEMS]:
        href = None
        if target is not None and isinstance(one, str):
            ref = formats.normalize_ref(one, target.target_kind, namespace)
            href = ref and formats.make_entity_path(ref)
        parts.append(_make_spec_part(one, href, room))
        room = max(0, room - len(parts[-1].text))
    return SpecField(formats.format_name(name), parts, max(0, len(values) - _ITEMS))


def _make_spec_part(value: Any, href: str | None, room: int) -> Part:
    if isinstance(value, bool) or value is None:
        return Part({True: "yes", False: "no", None: "none"}[value])
    if isinstance(value, int | float):
        return Part(formats.format_number(value))
    text = value if isinstance(value, str) else formats.format_json(value)
    folded = not isinstance(value, str) or len(text) > _LONG or "\n" in text.strip()
    return Part(
        text[:room], href or formats.get_external_url(text), folded=folded, cut=len(text) > room
    )


def _check_compliance_points(shown: EntityDetail, kind: str) -> list[CompliancePoint]:
    path = formats.make_entity_path(shown.stored.ref)
    return [
        CompliancePoint(
            point.title,
            point.is_met(shown.compliance),
            point.fix,
            f"{path}/facts/{point.source}/{point.fact}",
        )
        for point in list_compliance_points(kind, (*POINTS, OWNER_EXISTS))
    ]


_MOST: Final = 8
_LINKS: Final = 200  # examined per entity

SOURCE: Final = "Source code"
DOCUMENTATION: Final = "Documentation"
RUNBOOK: Final = "Runbook"
ON_CALL: Final = "On-call"
DASHBOARD: Final = "Dashboard"
_LINK_ORDER: Final = (SOURCE, DOCUMENTATION, RUNBOOK, ON_CALL, DASHBOARD)

_SLUG: Final = re.compile(r"(?!\.+/)[\w.-]+(/(?!\.+(/|\Z))[\w.-]+){1,20}", re.ASCII)
_NAME: Final = re.compile(r"[\w.-]{1,100}", re.ASCII)
_HOST: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_PROJECT_SLUG: Final = "/project-slug"

# Purpose of an annotation whose value is an address, by the annotation's domain.
_VENDORS: Final[Mapping[str, str]] = {
    "pagerduty.com": ON_CALL,
    "opsgenie.com": ON_CALL,
    "splunk.com": ON_CALL,
    "rootly.com": ON_CALL,
    "firehydrant.com": ON_CALL,
    "grafana": DASHBOARD,
    "grafana.com": DASHBOARD,
    "datadoghq.com": DASHBOARD,
    "newrelic.com": DASHBOARD,
    "dynatrace.com": DASHBOARD,
    "sentry.io": DASHBOARD,
}
# Purpose of a link, by a word in its type, icon or title.
_WORDS: Final[Mapping[str, str]] = {
    "source": SOURCE,
    "repo": SOURCE,
    "repository": SOURCE,
    "github": SOURCE,
    "gitlab": SOURCE,
    "bitbucket": SOURCE,
    "docs": DOCUMENTATION,
    "documentation": DOCUMENTATION,
    "techdocs": DOCUMENTATION,
    "wiki": DOCUMENTATION,
    "runbook": RUNBOOK,
    "runbooks": RUNBOOK,
    "playbook": RUNBOOK,
    "oncall": ON_CALL,
    "pager": ON_CALL,
    "pagerduty": ON_CALL,
    "opsgenie": ON_CALL,
    "dashboard": DASHBOARD,
    "dashboards": DASHBOARD,
    "grafana": DASHBOARD,
    "datadog": DASHBOARD,
    "kibana": DASHBOARD,
    "monitoring": DASHBOARD,
}


class OutwardLink(NamedTuple):
    """A link to another system, with its purpose."""

    purpose: str
    title: str
    href: str

    @property
    def host(self) -> str:
        """The host that a browser opens."""
        return validation.find_url_host(self.href)


def list_outward_links(entity: Mapping[str, Any]) -> list[OutwardLink]:
    """The links of an entity, ordered by purpose, each address once."""
    metadata: Mapping[str, Any] = entity["metadata"]
    outward = list(_list_annotation_links(metadata.get("annotations") or {}))
    for link in list(metadata.get("links") or ())[:_LINKS]:
        address = formats.get_external_url(link["url"])
        purpose = _get_purpose(link)
        if address and purpose:
            outward.append(OutwardLink(purpose, link.get("title") or purpose, address))
    by_address: dict[str, OutwardLink] = {}
    for each in outward:
        by_address.setdefault(each.href.rstrip("/"), each)
    ordered = sorted(by_address.values(), key=lambda link: _LINK_ORDER.index(link.purpose))
    return ordered[:_MOST]


def _list_annotation_links(annotations: Mapping[str, str]) -> Iterator[OutwardLink]:
    """Links from well-known annotations, with one repository at most."""
    located = _get_web_address(annotations.get("backstage.io/source-location"))
    slugs = (_make_repository_address(name, text) for name, text in annotations.items())
    source = located or next((address for address in slugs if address), None)
    if source:
        yield OutwardLink(SOURCE, SOURCE, source)
    if documented := _get_web_address(annotations.get("backstage.io/techdocs-ref")):
        yield OutwardLink(DOCUMENTATION, DOCUMENTATION, documented)
    for name, text in annotations.items():
        purpose = _VENDORS.get(name.partition("/")[0])
        if purpose and (address := _get_web_address(text)):
            yield OutwardLink(purpose, purpose, address)
    service = annotations.get("pagerduty.com/service-id", "")
    account = annotations.get("pagerduty.com/account", "")
    if _NAME.fullmatch(service) and _NAME.fullmatch(account):
        address = f"https://{account}.pagerduty.com/service-directory/{service}"
        yield OutwardLink(ON_CALL, ON_CALL, address)
    if address := _make_datadog_address(annotations):
        yield OutwardLink(DASHBOARD, "Datadog", address)


def _get_purpose(link: Mapping[str, Any]) -> str | None:
    """The purpose of a link; None if unknown."""
    for name in ("type", "icon", "title"):
        text = str(link.get(name) or "")[:200].lower()
        words = re.findall(r"[a-z]+", re.sub(r"on[- ]call", "oncall", text))
        if found := next((_WORDS[word] for word in words if word in _WORDS), None):
            return found
    return None


def _get_web_address(text: object) -> str | None:
    """The web address in a text, with or without the prefix `url:`."""
    return formats.get_external_url(text.removeprefix("url:")) if isinstance(text, str) else None


def _make_repository_address(name: str, text: str) -> str | None:
    """The repository address from a `HOST/project-slug` annotation."""
    host = name.removesuffix(_PROJECT_SLUG)
    if host == name or not _HOST.fullmatch(host):
        return None
    if address := _get_web_address(text):
        return address
    return f"https://{host}/{text}" if _SLUG.fullmatch(text) else None


def _make_datadog_address(annotations: Mapping[str, str]) -> str | None:
    service = annotations.get("datadoghq.com/service-name", "")
    site = annotations.get("datadoghq.com/site") or "datadoghq.com"
    if not service or not _HOST.fullmatch(site):
        return None
    host = site if site.count(".") > 1 else f"app.{site}"
    return formats.get_external_url(f"https://{host}/apm/services/{quote(service, safe='')}")


# How each relation type reads after the entity's name, in display order.
CAPTIONS: Final = {
    "dependencyOf": "dependency of",
    "hasPart": "has part",
    "apiProvidedBy": "API provided by",
    "apiConsumedBy": "API consumed by",
    "ownerOf": "owner of",
    "parentOf": "parent of",
    "hasMember": "has member",
    "ownedBy": "owned by",
    "partOf": "part of",
    "dependsOn": "depends on",
    "providesApi": "provides API",
    "consumesApi": "consumes API",
    "childOf": "child of",
    "memberOf": "member of",
}
_RELATION_ORDER: Final = {type_: place for place, type_ in enumerate(CAPTIONS)}

# Most relations whose titles and existence are all looked up.
_LOOKED_UP: Final = 200
_SHOWN: Final = 8  # of a group


class EntityRelation(msgspec.Struct, rename="camel", frozen=True):
    """A relation as the catalog shows it."""

    type: str
    target_ref: str


class RelatedEntity(NamedTuple):
    """The other entity of a relation; `exists` is False if it is not in the catalog."""

    ref: str
    kind: str
    title: str
    href: str
    exists: bool = True


class RelationGroup(NamedTuple):
    """The first relations of one type, the number of all, and the page that lists them."""

    type: str
    caption: str
    entities: list[RelatedEntity]
    total: int
    href: str

    @property
    def left(self) -> int:
        """Number of relations that are not shown."""
        return self.total - len(self.entities)


_decode_relations = msgspec.json.Decoder(list[EntityRelation]).decode


def list_relations(shown: EntityDetail) -> list[EntityRelation]:
    """Every relation of the entity, by type and target."""
    return _decode_relations(shown.stored.relations)


async def make_relation_groups(
    database: Database, relations: Sequence[EntityRelation], path: str
) -> list[RelationGroup]:
    """The first relations of each type; `path` is the page that lists all of them.

    Up to 200 relations are all looked up, for their titles. Of more, only the displayed ones are
    looked up, and they show the names by which they were chosen.
    """
    chosen = await run_offloaded(_choose_relations, relations)
    refs = sorted({each.target_ref for each in chosen})
    names = await stored_entities.read_display_names(database, refs)
    if len(chosen) < len(relations):
        names = {ref: DisplayName(get_ref_name(ref), get_ref_name(ref)) for ref in names}
    counts = {type_: count for type_, _, count in count_relation_types(relations)}
    return group_related(
        ((each.type, make_related_entity(each.target_ref, names)) for each in chosen), path, counts
    )


def group_related(
    related: Iterable[tuple[str, RelatedEntity]], path: str, counts: Mapping[str, int]
) -> list[RelationGroup]:
    """Group entities by relation type, ordered by type and then title.

    `counts` has the number of all relations of each type; long groups keep the first eight.
    """
    by_type: dict[str, set[RelatedEntity]] = {}
    for type_, entity in related:
        by_type.setdefault(type_, set()).add(entity)
    groups = []
    for type_ in sorted(
        by_type, key=lambda type_: (_RELATION_ORDER.get(type_, len(_RELATION_ORDER)), type_)
    ):
        # A row "and 1 more" would take as much room as the entity.
        limit = _SHOWN if counts[type_] > _SHOWN + 1 else _SHOWN + 1
        entities = sorted(
            by_type[type_], key=lambda entity: (make_natural_key(entity.title), entity.ref)
        )[:limit]
        href = f"{path}?type={quote(type_)}"
        groups.append(RelationGroup(type_, caption_relation(type_), entities, counts[type_], href))
    return groups


async def list_related(
    database: Database, relations: Sequence[EntityRelation]
) -> list[tuple[str, RelatedEntity]]:
    """Look up the entities of relations, as (caption, entity)."""
    refs = list(dict.fromkeys(relation.target_ref for relation in relations))
    names = await stored_entities.read_display_names(database, refs)
    return [
        (caption_relation(one.type), make_related_entity(one.target_ref, names))
        for one in relations
    ]


def count_relation_types(relations: Sequence[EntityRelation]) -> list[tuple[str, str, int]]:
    """(type, caption, number) of the relations of each type."""
    counts: dict[str, int] = {}
    for relation in relations:
        counts[relation.type] = counts.get(relation.type, 0) + 1
    return [(type_, caption_relation(type_), count) for type_, count in sorted(counts.items())]


def caption_relation(type_: str) -> str:
    """Caption for a relation type; an unknown type is split into words."""
    return CAPTIONS.get(type_) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", type_).lower()


def make_related_entity(ref: str, names: Mapping[str, DisplayName]) -> RelatedEntity:
    """The related entity of a reference; without a display name, it is not in the catalog."""
    named = names.get(ref)
    title = named.title if named else get_ref_name(ref)
    return RelatedEntity(
        ref, ref.partition(":")[0], title, make_entity_path(ref), named is not None
    )


def _choose_relations(relations: Sequence[EntityRelation]) -> Sequence[EntityRelation]:
    """All relations if few, else the first of each type by name."""
    if len(relations) <= _LOOKED_UP:
        return relations
    by_type: dict[str, set[EntityRelation]] = {}
    for relation in relations:
        by_type.setdefault(relation.type, set()).add(relation)
    chosen = list[EntityRelation]()
    for same_type in by_type.values():
        chosen += nsmallest(
            _SHOWN + 1,
            same_type,
            lambda relation: (
                make_natural_key(get_ref_name(relation.target_ref)),
                relation.target_ref,
            ),
        )
    return chosen


# Title of the contents page, for the kinds that have contents.
CONTENT_TITLES: Final = {"group": "Owns", "system": "Contains", "domain": "Contains"}
ENTITY_PATH = "/catalog/{kind}/{namespace}/{name}"

_NEAR = 5


class EntityView(NamedTuple):
    """An entity, as stored and as the catalog shows it."""

    shown: EntityDetail
    entity: dict[str, Any]
    relations: list[EntityRelation]
    links: list[OutwardLink]

    @property
    def ref(self) -> str:
        """Canonical reference."""
        return self.shown.stored.ref

    @property
    def path(self) -> str:
        """Path of its page."""
        return formats.make_entity_path(self.ref)

    @property
    def title(self) -> str:
        """Display name."""
        metadata = self.entity["metadata"]
        name = get_spec(self.entity).get("displayName") or metadata["name"]
        title: str = metadata.get("title") or name
        return title


def handle_entity_page(handler: Callable[[PageContext, EntityView], Awaitable[Reply]]) -> Handler:
    """Wrap a handler of entity pages; suggests other entities if the address names none."""

    async def answer(visit: PageContext) -> Reply:
        found = await _find_entity_or_reply(visit)
        return found if isinstance(found, Reply) else await handler(visit, found)

    return answer


async def _find_entity_or_reply(visit: PageContext) -> EntityView | Reply:
    parts = [visit.request.parameter(part) for part in ("kind", "namespace", "name")]
    ref = EntityRef.of(*parts)
    # No entity contains NUL, and PostgreSQL rejects text that does.
    shown = (
        None
        if "\0" in str(ref)
        else await stored_entities.read_entity_detail(visit.state.database, str(ref))
    )
    if shown is None:
        return await _show_missing_entity(visit, ref)
    subject: EntityView = await run_offloaded(_make_entity_view, shown)
    return subject


def _make_entity_view(shown: EntityDetail) -> EntityView:
    entity = msgspec.json.decode(shown.stored.render())
    return EntityView(shown, entity, list_relations(shown), list_outward_links(entity))


def make_entity_frame(found: EntityView, tab: str) -> dict[str, Any]:
    """Template values common to all pages of the entity."""
    spec = found.entity.get("spec") or {}
    kind, _, rest = found.ref.partition(":")
    owner = spec["owner"] if isinstance(spec.get("owner"), str) else ""
    return {
        "subject": found,
        "kind": kind,
        "kinds": [spec[name] for name in ("type", "lifecycle") if isinstance(spec.get(name), str)],
        "owner": owner,
        "owner_ref": formats.normalize_ref(owner, "group", rest.partition("/")[0]),
        "email": get_email(found.entity),
        "links": found.links,
        "tabs": [
            ("Overview", found.path, None),
            *(
                [(CONTENT_TITLES[kind], f"{found.path}/contents", None)]
                if kind in CONTENT_TITLES
                else []
            ),
            ("Relations", f"{found.path}/relations", len(found.relations)),
            ("History", f"{found.path}/history", None),
            ("Raw", f"{found.path}/raw", None),
        ],
        "tab": tab,
    }


async def _show_missing_entity(visit: PageContext, ref: EntityRef) -> Reply:
    """Page for an unknown entity, with suggestions."""
    near, is_owner = list[str](), False
    if all(part.isprintable() for part in ref):
        database = visit.state.database
        is_owner = await browse.is_relation_target(database, "ownedBy", str(ref))
        near = await stored_entities.find_refs_with_name(database, ref.name, _NEAR)
        similar = await stored_entities.find_similar_refs(database, ref.kind, ref.name, _NEAR)
        near += [one for one in similar if one not in near]
    return visit.page(
        "entity-missing.html",
        404,
        ref=str(ref),
        name=ref.name,
        is_owner=is_owner,
        near=near[: 2 * _NEAR],
    )
