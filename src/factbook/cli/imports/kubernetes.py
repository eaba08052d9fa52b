"""`factbook import kubernetes`: workloads of a cluster, written here or pushed to a server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from factbook.cli.connection import PushWord, Token, connected
from factbook.cli.imports.report import (
    Chosen,
    Plan,
    check_whole,
    import_chosen,
    moves_json,
    print_moves,
)
from factbook.cli.local import DatabaseUrl, settings_from
from factbook.cli.output import Json, note, note_each, print_json, print_table, progress, say

if TYPE_CHECKING:
    from factbook.operations.import_push import PushedPart
    from factbook.operations.import_snapshot import OneReading

_DECIDE: Final = "Look at what would be removed, and give --remove once."

Cluster = Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster in the catalog.")]
Push = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Push to the server at this address, not to the database."),
]
Remove = Annotated[
    bool, typer.Option("--remove", help="With --push: remove what would be held otherwise.")
]
Address = Annotated[
    str, typer.Option(metavar="URL", help="API server; by default that of the cluster around.")
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Token for the API server; by default the service account's."
    ),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", metavar="NAME", help="Import all of this one; * of every one."),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY[=VALUE]", help="Import what has this label."),
]
Resources = Annotated[
    list[str] | None,
    typer.Option("--resource", metavar="GROUP/VERSION/PLURAL", help="Import these as workloads."),
]


def kubernetes(
    context: typer.Context,
    *,
    cluster: Cluster,
    namespaces: Namespaces = None,
    labels: Labels = None,
    resources: Resources = None,
    url: Address = "",
    token_file: TokenFile = None,
    push: Push = None,
    remove: Remove = False,
    plan: Plan = False,
    push_word: PushWord = "factbook",
    token: Token = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the workloads of a Kubernetes cluster, as components.

    Those with the label backstage.io/kubernetes-id or the annotation
    terasky.backstage.io/add-to-catalog are imported, and those that options choose. With --push it
    runs in the cluster, as its service account, and only what it found leaves the cluster.

    \b
    Examples:
      factbook import kubernetes --cluster eu-1 --push https://factbook.example.com --plan
      factbook import kubernetes --cluster eu-1 --namespace payments --push http://factbook:8000
    """
    given = {"namespaces": namespaces, "labels": labels, "resources": resources}
    chosen: dict[str, Any] = {key: tuple(value) for key, value in given.items() if value}
    chosen |= {"cluster": cluster, "url": url}
    if token_file is not None:
        chosen["token_file"] = str(token_file.absolute())
    if push is None:
        import_chosen(Chosen("kubernetes", chosen), database_url, plan=plan, as_json=as_json)
        return
    from factbook.importers.kubernetes.cluster import WORKLOADS
    from factbook.operations.import_push import push_snapshot, rules, stated_names

    with connected(context, push, token, push_word) as client:
        names = stated_names(client, f"kubernetes.{cluster}.{WORKLOADS}", rules())
        reading = _reading(chosen, names)
        parts = push_snapshot(
            client, reading.importer, reading.snapshot, rules(), dry_run=plan, remove=remove
        )
    if as_json:
        print_json(_as_json(reading, parts, plan=plan))
    else:
        _show(reading, parts, plan=plan)
    check_whole({part.set: _state(part) for part in parts}, _DECIDE)


def _reading(chosen: dict[str, Any], names: dict[str, str]) -> "OneReading":
    import asyncio
    import os

    from factbook.operations.import_snapshot import read_once, within_cluster

    with progress("Reading") as show:
        settings = within_cluster(settings_from(None), os.environ)
        return asyncio.run(read_once("kubernetes", chosen, settings, show, names))


def _show(reading: "OneReading", parts: "list[PushedPart]", *, plan: bool) -> None:
    columns = ["Set", "State", "Added", "Updated", "Removed", "Unchanged", "Held", "Problems"]
    print_table(columns, map(_row, parts))
    print_moves(parts)
    for word, number in sorted(reading.snapshot.left_out.items()):
        say(f"Left out: {number:,} {word}")
    problems = [str(problem) for part in parts for problem in part.problems]
    if problems:
        note(f"Problems: {len(problems)}")
        note_each(problems)
    for part in parts:
        if part.held:
            note(f"{part.set}: {len(part.held)} entities are kept, because {part.reason}:")
            note_each(part.held)
    say(f"{reading.calls:,} calls{' (plan: nothing was written)' if plan else ''}")


def _row(part: "PushedPart") -> tuple[object, ...]:
    changes = part.changes
    counts = changes.added, changes.updated, changes.removed, changes.unchanged
    return (part.set, _state(part), *counts, len(part.held), len(part.problems))


def _state(part: "PushedPart") -> str:
    return "held" if part.held else "complete" if part.complete else "partial"


def _as_json(reading: "OneReading", parts: "list[PushedPart]", *, plan: bool) -> dict[str, Any]:
    return {
        "importer": reading.importer,
        "plan": plan,
        "calls": reading.calls,
        "leftOut": dict(reading.snapshot.left_out),
        "sets": [
            {
                "set": part.set,
                "state": _state(part),
                "changes": {
                    "added": part.changes.added,
                    "updated": part.changes.updated,
                    "removed": part.changes.removed,
                    "unchanged": part.changes.unchanged,
                },
                "moves": moves_json(part),
                "problems": [problem._asdict() for problem in part.problems],
                "held": list(part.held),
                "reason": part.reason or None,
            }
            for part in parts
        ],
    }
