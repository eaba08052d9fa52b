"""`factbook push`, `validate` and `sets`: push entities to the catalog."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from factbook.cli.command_parts import (
    DEFAULT_SERVER,
    REFUSED,
    USAGE,
    CommandError,
    Json,
    PushWord,
    Server,
    Token,
    connect_server,
    format_age,
    format_count,
    note_each,
    print_answer,
    print_json,
    print_note,
    print_table,
    say,
    show_progress,
)
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.cli.documents import EntityDocument
    from factbook.client import Pushed


OneOf = Literal["first", "last", "error"]
OnConflict = Annotated[
    Literal["take"] | None,
    typer.Option(help="`take` moves entities that belong to another set to this one."),
]
OnDuplicate = Annotated[
    OneOf,
    typer.Option(
        help="If an entity occurs more than once: keep the `first` or the `last`, "
        "or refuse the push (`error`)."
    ),
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
    on_duplicate: OnDuplicate = "error",
    max_removals: MaxRemovals = None,
    push_word: PushWord = "factbook",
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Replace the content of a set with the entities of files.

    Entities of the set that are in none of the files are removed. Either all of it happens, or
    nothing does. Files are YAML with any number of documents, JSON, or JSON lines. Each document,
    line and file of JSON holds one entity, a list of them, or {"items": [...]}.

    \b
    Examples:
      factbook push services catalog.yaml
      factbook push services teams/*.yaml --dry-run
      factbook push accounts accounts.json --max-removals 10%
      ./list-accounts | factbook push accounts -
      echo '{"items": []}' | factbook push accounts -     # removes the set
    """
    with show_progress("Reading") as show:
        problems: list[str] = []
        documents = _read_files(files, show, problems, ' To empty a set, push {"items": []}.')
        _refuse_problems(problems)
        documents = _resolve_duplicates(documents, on_duplicate)
        show(f"Pushing {len(documents):,} entities")
        with connect_server(
            context, server, token, push_word, lambda p: _describe_place(p, documents)
        ) as client:
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
        _print_pushed(pushed, documents)


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

    These rules are stricter than those of a push: only well-known kinds are valid, and what a push
    only warns about is a problem here. Annotations that no integration of the server can read are
    warnings.

    \b
    Examples:
      factbook validate catalog.yaml
      factbook validate teams/*.yaml
      ./list-accounts | factbook validate -
    """
    with show_progress("Reading") as show:
        problems: list[str] = []
        warnings: list[str] = []
        documents = _read_files(files, show, problems)
        code = USAGE if problems else REFUSED
        with connect_server(context, server, token) as client:
            for number, document in enumerate(documents, 1):
                show(f"Checking {number:,} of {len(documents):,}")
                said: list[str] = []
                found = client.validate(document.entity, warn=said.append)
                warnings += [f"{document.named}: {message}" for message in said]
                problems += [f"{document.named}: {message}" for message in found]
    if warnings:
        print_note(f"{format_count(warnings, 'warning')}:")
        note_each(warnings)
    if problems:
        raise CommandError(f"{format_count(problems, 'problem')}:", code, problems)
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
    with connect_server(context, server, token, push_word) as client:
        found = client.sets()
    rows = [(s.id, s.item_count, s.revision, s.updated_by, format_age(s.updated_at)) for s in found]
    columns = ["Set", "Entities", "Revision", "Updated by", "Updated"]
    print_answer(found, columns, rows, as_json=as_json)


def _read_files(
    files: Sequence[str], show: Callable[[str], None], problems: list[str], advice: str = ""
) -> list["EntityDocument"]:
    """Read the entities of files; adds a sentence to `problems` for each unreadable one."""
    # Only commands that read YAML import its parser.
    from factbook.cli.documents import DocumentsError, read_entity_file

    documents: list[EntityDocument] = []
    nothing = True
    for file in files:
        show(f"Reading {file}")
        try:
            found = read_entity_file(file)
        except DocumentsError as error:
            problems += error.problems
            continue
        except InputError as error:
            problems.append(error.message)
            continue
        nothing = nothing and found is None
        documents += found or []
    if nothing and not problems:
        # The program that made the file may have failed, and an empty push removes everything.
        raise InputError(f"No entity in {', '.join(files)}.{advice}")
    return documents


def _refuse_problems(problems: Sequence[str]) -> None:
    """Raise CommandError if there are problems."""
    if len(problems) == 1:
        raise CommandError(problems[0], USAGE)
    if problems:
        raise CommandError(
            f"{format_count(problems, 'problem')}, nothing was written:", USAGE, problems
        )


def _describe_place(path: str, documents: Sequence["EntityDocument"]) -> str:
    """Describe a JSON path of a push: the place in a file, the entity and the remaining path."""
    index, _, below = path.removeprefix("items[").partition("]")
    if path.startswith("items[") and index.isdecimal() and int(index) < len(documents):
        return f"{documents[int(index)].named}{below and ', '}{below.removeprefix('.')}"
    return path


def _print_pushed(pushed: "Pushed", documents: Sequence["EntityDocument"]) -> None:
    if pushed.difference:
        print_table(["Change", "Entity"], [(d.change, d.entity_ref) for d in pushed.difference])
    if pushed.warnings:
        print_note("Warnings:")
        note_each([f"{_describe_place(w.path, documents)}: {w.message}" for w in pushed.warnings])
    say(_push_summary(pushed))


def _push_summary(pushed: "Pushed") -> str:
    changes = pushed.changes
    counts = (
        f"{changes.added} added, {changes.updated} updated, "
        f"{changes.removed} removed, {changes.unchanged} unchanged"
    )
    warnings = f"; warnings: {len(pushed.warnings)}" if pushed.warnings else ""
    if pushed.dry_run:
        return f"{pushed.set}: {counts}{warnings} (dry run: nothing was written)"
    return f"{pushed.set}: {counts}; revision {pushed.revision}{warnings}"


def _resolve_duplicates(
    documents: Sequence["EntityDocument"], keep: OneOf
) -> list["EntityDocument"]:
    """Remove duplicates from the documents, keeping the order of first occurrence.

    Raises CommandError with the places of each duplicate, unless `keep` says which one to use.
    """
    places: dict[str, list[EntityDocument]] = {}
    for document in documents:
        if document.ref is not None:
            places.setdefault(document.ref, []).append(document)
    duplicates = {ref: copies for ref, copies in places.items() if len(copies) > 1}
    if not duplicates:
        return list(documents)
    if keep == "error":
        count = f"{len(duplicates)} entities are" if len(duplicates) > 1 else "1 entity is"
        raise CommandError(
            f"{count} in the files more than once, nothing was written:",
            lines=[
                f"{ref}: {', '.join(copy.origin for copy in copies)}"
                for ref, copies in duplicates.items()
            ],
            hint="--on-duplicate first or last keeps one of each.",
        )
    left_out = len(documents) - len(places) - sum(each.ref is None for each in documents)
    print_note(f"Duplicates left out: {left_out}. Of each entity the {keep} one is kept.")
    chosen = {ref: copies[0 if keep == "first" else -1] for ref, copies in duplicates.items()}
    return [
        chosen.get(document.ref or "", document)
        for document in documents
        if document.ref not in duplicates or document is duplicates[document.ref][0]
    ]
