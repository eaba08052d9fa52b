"""`factbook push`, `validate` and `sets`: entities into the catalog."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from factbook.cli.connection import DEFAULT_SERVER, PushWord, Server, Token, connected, count
from factbook.cli.failures import CommandError
from factbook.cli.output import Json, note, note_each, print_json, print_table, progress, say
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.cli.documents import Document
    from factbook.client import PushAnswer

OnConflict = Annotated[
    Literal["take"] | None,
    typer.Option(help="`take` moves entities here that belong to another set."),
]
MaxRemovals = Annotated[
    str | None,
    typer.Option(metavar="N|N%", help="Refuse a push that removes more entities than this."),
]


def push(
    context: typer.Context,
    set_id: Annotated[str, typer.Argument(metavar="SET", help="Name of the set.")],
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files of YAML or JSON; - is standard input."),
    ],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; show what would change.")
    ] = False,
    on_conflict: OnConflict = None,
    max_removals: MaxRemovals = None,
    push_word: PushWord = "factbook",
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Replace the content of a set by the entities of files.

    Entities of the set that are in none of the files are removed. All of it happens, or nothing.
    YAML may hold many documents; JSON may hold one entity, a list, or {"items": [...]}.

    \b
    Examples:
      factbook push services catalog.yaml
      factbook push services teams/*.yaml --dry-run
      factbook push accounts accounts.json --max-removals 10%
      ./list-accounts | factbook push accounts -
      echo '{"items": []}' | factbook push accounts -     # removes the set
    """
    with progress("Reading") as show:
        documents = _read_all(files, show, ' To empty a set, push {"items": []}.')
        show(f"Pushing {len(documents):,} entities")
        origins = [document.origin for document in documents]
        with connected(context, server, token, push_word, lambda p: _where(p, origins)) as client:
            pushed = client.push(
                set_id,
                [document.entity for document in documents],
                dry_run=dry_run,
                on_conflict=on_conflict,
                max_removals=max_removals,
            )
    if as_json:
        print_json(pushed)
    else:
        _show(pushed, origins)


def validate(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files of YAML or JSON; - is standard input."),
    ],
    *,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
) -> None:
    """Check the entities of files against the server's strict rules, and write nothing.

    These rules are narrower than those of a push: they know the well-known kinds alone, and what a
    push only warns of is a problem here.

    \b
    Examples:
      factbook validate catalog.yaml
      factbook validate teams/*.yaml
      ./list-accounts | factbook validate -
    """
    with progress("Reading") as show:
        documents = _read_all(files, show)
        problems = []
        with connected(context, server, token) as client:
            for number, document in enumerate(documents, 1):
                show(f"Checking {number:,} of {len(documents):,}")
                found = client.validate(document.entity)
                problems += [f"{document.origin}: {message}" for message in found]
    if problems:
        raise CommandError(f"{count(problems, 'problem')}:", lines=problems)
    say("1 entity is valid." if len(documents) == 1 else f"{len(documents)} entities are valid.")


def sets(
    context: typer.Context,
    *,
    push_word: PushWord = "factbook",
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """List the sets of entities.

    \b
    Examples:
      factbook sets
      factbook sets --json
    """
    with connected(context, server, token, push_word) as client:
        found = client.sets()
    if as_json:
        print_json(found)
        return
    rows = [(s.id, s.item_count, s.revision, s.updated_by, s.updated_at) for s in found]
    print_table(["Set", "Entities", "Revision", "Updated by", "Updated at"], rows)


def _read_all(
    files: Sequence[str], show: Callable[[str], None], advice: str = ""
) -> list["Document"]:
    # Reading YAML is imported by the one command that reads it.
    from factbook.cli.documents import read

    documents: list[Document] = []
    nothing = True
    for file in files:
        show(f"Reading {file}")
        found = read(file)
        nothing = nothing and found is None
        documents += found or []
    if nothing:
        # What made the file may have failed, and an empty push removes everything.
        raise InputError(f"No entity in {', '.join(files)}.{advice}")
    return documents


def _where(path: str, origins: Sequence[str]) -> str:
    """The JSON path of a problem, after the document that it is about: `items[3].kind`."""
    index = path.removeprefix("items[").partition("]")[0]
    if path.startswith("items[") and index.isdecimal() and int(index) < len(origins):
        return f"{origins[int(index)]}, {path}"
    return path


def _show(pushed: "PushAnswer", origins: Sequence[str]) -> None:
    if pushed.difference:
        print_table(["Change", "Entity"], [(d.change, d.entity_ref) for d in pushed.difference])
    if pushed.warnings:
        note("Warnings:")
        note_each([f"{_where(w.path, origins)}: {w.message}" for w in pushed.warnings])
    say(_summary(pushed))


def _summary(pushed: "PushAnswer") -> str:
    changes = pushed.changes
    counts = (
        f"{changes.added} added, {changes.updated} updated, "
        f"{changes.removed} removed, {changes.unchanged} unchanged"
    )
    warnings = f"; warnings: {len(pushed.warnings)}" if pushed.warnings else ""
    if pushed.dry_run:
        return f"{pushed.set}: {counts}{warnings} (dry run: nothing was written)"
    return f"{pushed.set}: {counts}; revision {pushed.revision}{warnings}"
