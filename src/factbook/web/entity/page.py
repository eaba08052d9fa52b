"""Pages of one entity: their frame, its relations, its document, and the facts of a source."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.catalog.ref import EntityRef
from factbook.catalog.store import by_ref
from factbook.catalog.store.by_ref import EntityDetail
from factbook.datasources.custom import yaml_text
from factbook.errors import InputError, UnsupportedError
from factbook.facts import store
from factbook.http.requests import Reply, offloaded
from factbook.integrations import catalog
from factbook.scheduling import runs
from factbook.web.data_sources import source_labels
from factbook.web.entity import facts, relation_list
from factbook.web.entity.about import email_of, spec_of
from factbook.web.entity.outward_links import OutwardLink, outward_links
from factbook.web.site import formats
from factbook.web.site.endpoint import Handler, PageRoute
from factbook.web.site.page_context import PageContext

# Kinds that hold others, each with the title of what it holds.
CONTENTS: Final = {"group": "Owns", "system": "Contains", "domain": "Contains"}
PATH = "/catalog/{kind}/{namespace}/{name}"

_NEAR = 5
_RELATIONS = 100  # of one page
_MOST_PAGES = 10_000
_LARGEST_YAML = 1_000_000  # characters of JSON
_RAW = 200_000  # characters of a document that are shown; all of it can be downloaded


class EntityView(NamedTuple):
    """The entity of a page, as stored and as the catalog shows it."""

    shown: EntityDetail
    entity: dict[str, Any]
    relations: list[relation_list.EntityRelation]
    links: list[OutwardLink]

    @property
    def ref(self) -> str:
        """Canonical reference."""
        return self.shown.stored.ref

    @property
    def path(self) -> str:
        """Path of its page."""
        return formats.entity_path(self.ref)

    @property
    def title(self) -> str:
        """Display name."""
        metadata = self.entity["metadata"]
        name = spec_of(self.entity).get("displayName") or metadata["name"]
        title: str = metadata.get("title") or name
        return title


def of_entity(handler: Callable[[PageContext, EntityView], Awaitable[Reply]]) -> Handler:
    """Handler of a page of the entity in the address; suggests others if there is none."""

    async def answer(visit: PageContext) -> Reply:
        found = await _find(visit)
        return found if isinstance(found, Reply) else await handler(visit, found)

    return answer


async def _find(visit: PageContext) -> EntityView | Reply:
    parts = [visit.request.parameter(part) for part in ("kind", "namespace", "name")]
    ref = EntityRef.of(*parts)
    # No entity has the character NUL, and PostgreSQL takes no text that does.
    shown = None if "\0" in str(ref) else await by_ref.entity_detail(visit.state.database, str(ref))
    if shown is None:
        return await _missing(visit, ref)
    subject: EntityView = await offloaded(_decoded, shown)
    return subject


def _decoded(shown: EntityDetail) -> EntityView:
    entity = msgspec.json.decode(shown.stored.render())
    return EntityView(shown, entity, relation_list.of(shown), outward_links(entity))


async def relations(visit: PageContext, found: EntityView) -> Reply:
    """Page of an entity's relations, of one type or all, in pages."""
    everything = found.relations
    type_ = visit.query("type")
    asked = [each for each in everything if type_ in ("", each.type)]
    number = _number(visit.query("page", "1"))
    first = (number - 1) * _RELATIONS
    shown = asked[first : first + _RELATIONS]
    path = f"{found.path}/relations?type={formats.segment(type_)}&page="
    return visit.page(
        "entity-relations.html",
        **frame(found, "Relations"),
        types=relation_list.types(everything),
        type=type_,
        rows=await relation_list.listed(visit.state.database, shown),
        total=len(asked),
        first=first,
        before=f"{path}{number - 1}" if number > 1 else None,
        after=f"{path}{number + 1}" if first + _RELATIONS < len(asked) else None,
    )


async def raw(visit: PageContext, found: EntityView) -> Reply:
    """Page of an entity as JSON and as YAML, to copy."""
    text: str = await offloaded(formats.json_text, found.entity)
    forms = [("JSON", "json", text), ("YAML", "yaml", "")]
    if len(forms[0][2]) <= _RAW:
        forms[1] = ("YAML", "yaml", await offloaded(yaml_text.written, found.entity))
    return visit.page(
        "entity-raw.html",
        **frame(found, "Raw"),
        forms=forms,
        too_long=len(forms[0][2]) > _RAW,
    )


async def as_json(visit: PageContext, found: EntityView) -> Reply:
    """Entity as a JSON file."""
    text: str = await offloaded(formats.json_text, found.entity)
    return _file(found, "json", text + "\n", b"application/json")


async def as_yaml(visit: PageContext, found: EntityView) -> Reply:
    """Entity as a YAML file; the largest come as JSON, which does not take seconds."""
    if len(found.shown.stored.render()) > _LARGEST_YAML:
        raise UnsupportedError("This entity is too large for YAML; take its JSON.")
    text = await offloaded(yaml_text.written, found.entity)
    return _file(found, "yaml", text, b"application/yaml; charset=utf-8")


async def source(visit: PageContext, found: EntityView) -> Reply:
    """Page of all facts of an entity from one data source."""
    known = await visit.state.registry.current()
    asked = known.sources.get(visit.request.parameter("source"))
    if asked is None or catalog.answers(asked.id):
        return visit.redirect(found.path)
    database = visit.state.database
    down = await runs.down_since(database, [asked.id])
    card = await facts.card(
        visit,
        found.shown.id,
        found.ref,
        asked,
        await store.latest(database, asked.id, found.shown.id),
        down.get(asked.id),
        found.entity,
        can_collect=facts.can_collect(visit, known, asked),
    )
    return visit.page(
        "entity-source.html",
        **frame(found, ""),
        card=card,
        cadence=source_labels.cadence,
    )


def frame(found: EntityView, tab: str) -> dict[str, Any]:
    """Template values common to all pages of the entity."""
    spec = found.entity.get("spec") or {}
    kind, _, rest = found.ref.partition(":")
    owner = spec["owner"] if isinstance(spec.get("owner"), str) else ""
    return {
        "subject": found,
        "kind": kind,
        "kinds": [spec[name] for name in ("type", "lifecycle") if isinstance(spec.get(name), str)],
        "owner": owner,
        "owner_ref": formats.reference(owner, "group", rest.partition("/")[0]),
        "email": email_of(found.entity),
        "links": found.links,
        "tabs": [
            ("Overview", found.path, None),
            *([(CONTENTS[kind], f"{found.path}/contents", None)] if kind in CONTENTS else []),
            ("Relations", f"{found.path}/relations", len(found.relations)),
            ("History", f"{found.path}/history", None),
            ("Raw", f"{found.path}/raw", None),
        ],
        "tab": tab,
    }


def _file(found: EntityView, ending: str, text: str, content_type: bytes) -> Reply:
    name = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "-"
                   for char in formats.name_of(found.ref))  # fmt: skip
    headers = {"content-disposition": f'attachment; filename="{name[:100]}.{ending}"'}
    return Reply(text.encode(), headers=headers, content_type=content_type)


async def _missing(visit: PageContext, ref: EntityRef) -> Reply:
    """Page for an unknown entity, with suggestions."""
    near: list[str] = []
    if all(part.isprintable() for part in ref):
        database = visit.state.database
        near = await by_ref.same_name(database, ref.name, _NEAR)
        similar = await by_ref.similar(database, ref.kind, ref.name, _NEAR)
        near += [one for one in similar if one not in near]
    return visit.page(
        "entity-missing.html", 404, ref=str(ref), name=ref.name, near=near[: 2 * _NEAR]
    )


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= _MOST_PAGES:
        raise InputError("There is no such page of the list.")
    return int(text[:9])


_NEEDS = (CATALOG_READ, SOURCE_READ)

ENTITY: Sequence[PageRoute] = (
    PageRoute("GET", f"{PATH}/relations", of_entity(relations), _NEEDS),
    PageRoute("GET", f"{PATH}/raw", of_entity(raw), _NEEDS),
    PageRoute("GET", f"{PATH}/raw.json", of_entity(as_json), _NEEDS),
    PageRoute("GET", f"{PATH}/raw.yaml", of_entity(as_yaml), _NEEDS),
    PageRoute("GET", f"{PATH}/facts/{{source}}", of_entity(source), _NEEDS),
)
