"""Reading, writing and report of `factbook checks import`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from factbook.checks import document_readers
from factbook.checks.document_readers import DefinitionDocument, Kind
from factbook.checks.takeover import backstage, rhdh, roadie
from factbook.checks.takeover.fact_names import Sources
from factbook.checks.takeover.remarks import REFUSED
from factbook.checks.takeover.taken_over import ItemRemark, TakenOver
from factbook.cli.connection import count
from factbook.cli.definition_files import content, write
from factbook.cli.documents import STDIN, parse
from factbook.cli.output import say
from factbook.datasources.custom import yaml_text
from factbook.errors import InputError

_LONGEST_NAME: Final = 150

_READERS: Final[Mapping[str, Callable[[object, Sources], TakenOver]]] = {
    "backstage": backstage.taken_over,
    "rhdh": rhdh.taken_over,
    "roadie": roadie.taken_over,
}


def taken_over(file: str, peer: str, sources: Sequence[str]) -> TakenOver:
    """The checks and scorecards of a file; raises InputError if there are none."""
    ids = dict(_pair(one) for one in sources)
    name = "standard input" if file == STDIN else file
    try:
        data = content(file)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    found = [msgspec.json.decode(one.entity) for one in parse(data, name, f"of {peer}") or []]
    try:
        return _READERS[peer](found[0] if len(found) == 1 else found, ids)
    except RecursionError:
        raise InputError(f"{name} is nested too deeply.") from None


def write_all(found: Sequence[DefinitionDocument], folder: Path, *, quiet: bool = False) -> None:
    """Write each document to a new file; raises InputError, before any, if one is there."""
    written: dict[Path, dict[str, Any]] = {}
    taken: set[str] = set()
    for kind, document in found:
        file = folder / f"{kind}s" / f"{_distinct(_name(kind, document), kind, taken)}.yaml"
        written[file] = document_readers.make_file_document(kind, document)
    for file in written:
        if file.exists():
            raise InputError(f"{file} is there already; nothing was written.")
    for file, document in written.items():
        write(file, yaml_text.written(document), quiet=quiet)


def _name(kind: Kind, document: Mapping[str, Any]) -> str:
    """The name of the file of a document, as short as any file system wants it."""
    if kind != "exemption":
        return str(document["id"])
    entity = str(document["entity"]).rpartition("/")[2]
    return f"{document.get('check') or document['scorecard']}-{entity}"[:_LONGEST_NAME]


def _distinct(name: str, kind: Kind, taken: set[str]) -> str:
    """The name with a number if another is the same where the case of letters is nothing."""
    found, number = name, 1
    while f"{kind} {found}".casefold() in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(f"{kind} {found}".casefold())
    return found


def refused(found: TakenOver) -> list[str]:
    """The items that could not be taken over."""
    items = (one.item for one in found.remarks if one.remark.kind == REFUSED)
    return list(dict.fromkeys(items))


def show(found: TakenOver) -> None:
    """Print how much was written, and every remark."""
    ids = {kind: list(found.taken(kind)) for kind in document_readers.KINDS}
    say(
        "; ".join(count(ids[kind], kind) for kind in document_readers.KINDS if ids[kind])
        or "nothing"
    )
    for one in found.remarks:
        say(_line(one))


def as_json(found: TakenOver) -> dict[str, Any]:
    """Files written, and every remark, as JSON."""
    return {
        "written": [{"kind": kind, "id": document["id"]} for kind, document in found.documents],
        "remarks": [{"item": item, **remark._asdict()} for item, remark in found.remarks],
    }


def _line(one: ItemRemark) -> str:
    path = f" {one.remark.path}" if one.remark.path else ""
    return f"{one.remark.kind}: {one.item}:{path} {one.remark.message}"


def _pair(text: str) -> tuple[str, str]:
    theirs, mark, ours = text.partition("=")
    if not mark or not theirs or not ours:
        raise InputError(f"--source has to be THEIRS=OURS, not {text}.")
    return theirs, ours
