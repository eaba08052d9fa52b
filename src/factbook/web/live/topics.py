"""Topics that a page watches: what each may be about, and the permissions for it.

A topic is a word such as `sources`, or one with an id: `source/github`, `entity/component:a/b`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ
from factbook.errors import InputError
from factbook.events.store import EventMark
from factbook.importers.run_store import ImportRun
from factbook.importers.snapshot import PREFIX
from factbook.scheduling.runs import RunRecord

# More than any page shows, and the longest of an entity.
_MOST: Final = 8
_LONGEST: Final = 400

SOURCES: Final = "sources"
_ENTITY: Final = "entity/"

_ALONE: Final[Mapping[str, tuple[str, ...]]] = {
    SOURCES: (SOURCE_READ,),
    "importers": (CATALOG_READ,),
    "exemptions": (CHECK_READ,),
}
_WITH_ID: Final[Mapping[str, tuple[str, ...]]] = {
    "source": (SOURCE_READ,),
    "run": (SOURCE_READ,),
    "importer": (CATALOG_READ,),
    "check": (CHECK_READ,),
    "scorecard": (CHECK_READ,),
    "entity": (CATALOG_READ, SOURCE_READ),
}


def checked(named: Iterable[str]) -> frozenset[str]:
    """The topics of a request; raises InputError for unknown ones and for too many."""
    found = frozenset(named)
    if not found or len(found) > _MOST:
        raise InputError(f"A page watches between 1 and {_MOST} topics.")
    for topic in found:
        word, slash, id_ = topic.partition("/")
        is_known = (word in _WITH_ID and bool(id_)) if slash else word in _ALONE
        if not is_known or len(topic) > _LONGEST:
            raise InputError("There is no such topic.")
    return found


def permissions(topics: Iterable[str]) -> tuple[str, ...]:
    """The permissions that it takes to hear of all these topics."""
    found: dict[str, None] = {}
    for topic in topics:
        word, slash, _ = topic.partition("/")
        found |= dict.fromkeys((_WITH_ID if slash else _ALONE)[word])
    return tuple(found)


def entities(topics: Iterable[str]) -> Iterator[str]:
    """The references of the entities among the topics."""
    return (topic.removeprefix(_ENTITY) for topic in topics if topic.startswith(_ENTITY))


def of_entity(ref: str) -> str:
    """The topic of an entity."""
    return f"{_ENTITY}{ref}"


def of_mark(mark: EventMark) -> Iterator[str]:
    """The topics of a row of the feed, but for the entities in it."""
    match mark.topic:
        case "source":
            yield from (SOURCES, f"source/{mark.about}")
        case "fact":
            yield f"source/{mark.about}"
        case "check":
            yield f"check/{mark.about}"
        case "level":
            yield f"scorecard/{mark.about}"
        case "exemption":
            yield "exemptions"
        case "set" if mark.about.startswith(PREFIX):
            yield from ("importers", f"importer/{mark.about.split('/')[1]}")


def of_run(run: RunRecord) -> Iterator[str]:
    """The topics of a run with other figures than before."""
    yield from (f"run/{run.id}", f"source/{run.source_id}")


def of_import(run: ImportRun) -> Iterator[str]:
    """The topics of a run of an importer that went a step further."""
    yield from ("importers", f"importer/{run.importer}")
