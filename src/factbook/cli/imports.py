"""`factbook import`: import from other systems, with a command for each kind of importer."""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Protocol

import msgspec
import typer

from factbook.cli.command_parts import (
    EXIT_CODES,
    CommandError,
    DatabaseUrl,
    Json,
    PushWord,
    Token,
    connect_server,
    format_age,
    note_each,
    print_answer,
    print_json,
    print_note,
    print_table,
    run_on_database,
    say,
    settings_from,
    show_progress,
)
from factbook.clock import SECOND, iso_or_none, now
from factbook.errors import suggestion

if TYPE_CHECKING:
    from factbook.backend import Backend
    from factbook.importers.records import ImportPartRecord
    from factbook.importers.runner import ImportReport
    from factbook.operations.imports import OneReading, PushedPart
if TYPE_CHECKING:
    from factbook.backend import Backend
    from factbook.importers.records import ImportPartRecord, ImportRun
    from factbook.importers.registry import ImporterDetail
    from factbook.importers.runner import ImportReport


PART_COLUMNS: Final = ("Part", "State", "Read", "Last complete", "Entities", "Problems", "Held")

# Advice on deciding about held removals.
DECIDE_ON_REMOVALS: Final = (
    "Look at them and decide: factbook import show {0}, then factbook import apply {0}, or "
    "factbook import discard {0} to keep them."
)

Plan = Annotated[bool, typer.Option("--plan", help="Write nothing; show what would change.")]

# Runs imports; calls the function with what is being read.
Work = Callable[["Backend", Callable[[str], None]], Coroutine[Any, Any, "list[ImportReport]"]]

AwsRole = Annotated[
    str,
    typer.Option(metavar="ARN", help="Role of the management account, or of a delegated one."),
]
ExternalId = Annotated[
    str, typer.Option(metavar="TEXT", help="External id that the role requires.")
]
OwnerTags = Annotated[
    list[str] | None,
    typer.Option("--owner-tag", metavar="KEY", help="Tag that names the owner; several times."),
]
AwsInstance = Annotated[
    str, typer.Option(metavar="NAME", help="Name of the import, which is part of its sets.")
]

PeerAddress = Annotated[
    str,
    typer.Option(metavar="URL", help="Address of the service, above /api/catalog."),
]
PeerFilters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="KEY=VALUE,...",
        help="Conditions that all hold; given several times, one of the texts has to.",
    ),
]
PeerToken = Annotated[
    str,
    typer.Option(
        "--catalog-token",
        envvar="CATALOG_TOKEN",
        show_envvar=True,
        help="Token that may read entities there.",
    ),
]
Prefix = Annotated[
    str, typer.Option(metavar="TEXT", help="Put before every namespace, also in references.")
]
PeerInstance = Annotated[
    str, typer.Option(metavar="NAME", help="Name of the import, which is part of its sets.")
]

Organizations = Annotated[
    list[str] | None,
    typer.Option("--org", metavar="LOGIN", help="Organization; may be given several times."),
]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="PATH", help="Group; may be given several times."),
]
Archived = Annotated[
    bool, typer.Option("--archived", help="Import archived repositories, as deprecated.")
]
Forks = Annotated[bool, typer.Option("--forks", help="Import forks.")]
People = Annotated[bool, typer.Option("--people/--no-people", help="Import teams and members.")]

Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        help="Namespace of what is imported; without it, everything keeps the one it has.",
    ),
]

LdifFile = Annotated[Path, typer.Argument(metavar="FILE", help="LDIF file.")]
EntityNamespace = Annotated[
    str, typer.Option("--namespace", metavar="NAME", help="Namespace of the users and groups.")
]
LdifInstance = Annotated[
    str, typer.Option(metavar="NAME", help="Name of the import, which is part of its sets.")
]

_DECIDE_ON_PUSH: Final = "Look at what would be removed, and give --remove once."

Cluster = Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster in the catalog.")]
Push = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Push to the server at this address, not to the database."),
]
Remove = Annotated[
    bool, typer.Option("--remove", help="With --push: remove what would be held otherwise.")
]
ClusterAddress = Annotated[
    str, typer.Option(metavar="URL", help="API server; by default that of the cluster it runs in.")
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Token for the API server; by default the service account's."
    ),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        help="Import everything in this namespace; * for all namespaces.",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY[=VALUE]", help="Import what has this label."),
]
Resources = Annotated[
    list[str] | None,
    typer.Option("--resource", metavar="GROUP/VERSION/PLURAL", help="Import these as workloads."),
]


def part_json(record: "ImportPartRecord") -> dict[str, Any]:
    """Convert a part, with its problems and held removals, to JSON."""
    return {
        "part": part_name(record),
        "state": record.state,
        "readAt": iso_or_none(record.read_at),
        "completeAt": iso_or_none(record.complete_at),
        "entities": record.items,
        "problemCount": record.problem_count,
        "problems": [problem._asdict() for problem in record.problems],
        "held": list(record.held),
        "reason": record.reason or None,
    }


def part_row(record: "ImportPartRecord") -> tuple[object, ...]:
    """Make the table row of a part, by PART_COLUMNS."""
    times = format_age(record.read_at), format_age(record.complete_at)
    counts = record.items, record.problem_count, len(record.held)
    return (part_name(record), record.state, *times, *counts)


def part_name(record: "ImportPartRecord") -> str:
    """Name of a part in commands, e.g. github/acme.repositories."""
    return f"{record.importer}/{record.part}"


class Chosen(NamedTuple):
    """An import described by a command.

    `account` replaces the table `[integrations.<vendor>.<instance>]`; `variable` is the environment
    variable with its credential.
    """

    kind: str
    options: Mapping[str, Any]
    instance: str = "default"
    account: Mapping[str, Any] | None = None
    variable: str = ""


def run_chosen_import(
    chosen: Chosen, database_url: str | None, *, plan: bool, as_json: bool
) -> None:
    """Run or plan the chosen import, and print the report.

    Raises CommandError if anything could not be read.
    """
    from factbook.operations import imports

    async def work(backend: "Backend", show: Callable[[str], None]) -> "list[ImportReport]":
        given = imports.ChosenImport(*chosen)
        return [await imports.import_from(backend, given, plan=plan, show=show)]

    [report] = run_imports(work, database_url)
    if as_json:
        print_json(report_json(report, plan=plan))
    else:
        print_report(report, plan=plan)
    check_reports([report])


def run_imports(work: Work, database_url: str | None) -> "list[ImportReport]":
    """Run imports on the configured database."""
    import asyncio

    from factbook.backend import Backend

    settings = msgspec.structs.replace(settings_from(database_url), log_level="error")

    with Backend.traced_meanwhile(settings) as backend, show_progress("Reading") as show:
        return asyncio.run(work(backend, show))


def check_whole(states: Mapping[str, str], decide: str = DECIDE_ON_REMOVALS) -> None:
    """Raise CommandError if a part is partial or holds removals; `states` is by part name.

    `decide` is the advice on held removals.
    """
    partial = [name for name, state in states.items() if state == "partial"]
    held = [name for name, state in states.items() if state == "held"]
    if partial:
        hint = (
            "Solve the problems, or import again once the system answers. "
            f"They are listed by: factbook import show {partial[0]}"
        )
        raise CommandError(
            "Not everything could be read; what could not stays as it was.", hint=hint
        )
    if held:
        raise CommandError("Removals are held; the entities stay.", hint=decide.format(held[0]))


def check_reports(found: Iterable["ImportReport"]) -> None:
    """Call `check_whole` for the parts of reports."""
    check_whole(
        {part_name(one.record): one.record.state for report in found for one in report.parts}
    )


def print_report(report: "ImportReport", *, plan: bool) -> None:
    """Print the parts, the changes by kind, the problems and the number of calls."""
    columns = ["Part", "State", "Added", "Updated", "Removed", "Unchanged", "Held", "Problems"]
    rows = [
        (
            part_name(part.record),
            part.record.state,
            *(part.changes[word] for word in ("added", "updated", "removed", "unchanged")),
            len(part.record.held),
            part.record.problem_count,
        )
        for part in report.parts
    ]
    print_table(columns, rows)
    counts = Counter(
        (difference.entity_ref.partition(":")[0], difference.change)
        for part in report.parts
        for difference in part.difference
    )
    changes = [(kind, change, count) for (kind, change), count in sorted(counts.items())]
    print_table(["Kind", "Change", "Entities"], changes)
    print_moves(report.parts)
    for word, count in sorted(report.snapshot.left_out.items()):
        say(f"Left out: {count:,} {word}")
    problems = [str(problem) for part in report.parts for problem in part.record.problems]
    if problems:
        print_note(f"Problems: {len(problems)}")
        note_each(problems)
    for part in report.parts:
        if part.record.held:
            name = part_name(part.record)
            print_note(f"{name}: {len(part.record.held)} removals are held, because")
            print_note(f"  {part.record.reason}. See: factbook import show {name}")
    left = "" if report.left is None else f"; {report.left:,} of the limit are left"
    say(f"{report.calls:,} calls{left}{' (plan: nothing was written)' if plan else ''}")


class _Moving(Protocol):
    @property
    def moves(self) -> Mapping[str, str]: ...


def print_moves(parts: Iterable[_Moving]) -> None:
    """Print the entities whose reference changes, if any."""
    if moves := [move for one in parts for move in sorted(one.moves.items())]:
        print_table(["Moved from", "To"], moves)


def moves_json(one: _Moving) -> list[dict[str, str]]:
    """Convert the reference changes of a part to JSON."""
    return [{"from": old, "to": new} for old, new in sorted(one.moves.items())]


def report_json(report: "ImportReport", *, plan: bool) -> dict[str, Any]:
    """Convert the report to JSON, with every changed entity."""
    return {
        "importer": report.importer,
        "plan": plan,
        "calls": report.calls,
        "limitLeft": report.left,
        "leftOut": dict(report.snapshot.left_out),
        "parts": [
            part_json(one.record)
            | {
                "changes": dict(one.changes),
                "moves": moves_json(one),
                "difference": [
                    {"entityRef": each.entity_ref, "change": each.change} for each in one.difference
                ],
            }
            for one in report.parts
        ],
    }


def import_aws(
    *,
    role: AwsRole = "",
    external_id: ExternalId = "",
    closed: Annotated[
        bool, typer.Option("--closed", help="Import suspended and closed accounts.")
    ] = False,
    units: Annotated[
        bool, typer.Option("--units", help="Import organizational units, as systems.")
    ] = False,
    owner_tags: OwnerTags = None,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Namespace of the resources and systems.")
    ] = "default",
    plan: Plan = False,
    instance: AwsInstance = "default",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the accounts of an organization of AWS, as resources.

    The keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the role of a Kubernetes
    service account. With --role, they are used only to assume that role.

    \b
    Examples:
      factbook import aws --plan
      factbook import aws --role arn:aws:iam::111122223333:role/factbook --units
    """
    chosen: dict[str, Any] = {
        "role": role,
        "external_id": external_id,
        "closed": closed,
        "units": units,
        "namespace": namespace,
    }
    if owner_tags:
        chosen["owner_tags"] = tuple(owner_tags)
    run_chosen_import(Chosen("aws", chosen, instance), database_url, plan=plan, as_json=as_json)


def import_catalog(
    *,
    address: PeerAddress,
    filters: PeerFilters = None,
    namespace_prefix: Prefix = "",
    plan: Plan = False,
    instance: PeerInstance = "default",
    token: PeerToken = "",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the entities of a Backstage, Roadie or other Factbook catalog.

    They keep their references, from which relations are rebuilt. Entities that a push owns stay as
    they are. Many removals at once wait: see `factbook import apply`.

    \b
    Examples:
      export CATALOG_TOKEN=...
      factbook import catalog --address https://backstage.example.com --plan
      factbook import catalog --address https://backstage.example.com --filter kind=component
    """
    chosen: dict[str, Any] = {
        "address": address,
        "token": token,
        "filters": tuple(filters or ()),
        "namespace_prefix": namespace_prefix,
    }
    run_chosen_import(Chosen("catalog", chosen, instance), database_url, plan=plan, as_json=as_json)


def _instance_option(kind: str) -> Any:
    return typer.Option(
        metavar="NAME", help=f"Table [integrations.{kind}.NAME] with the credential."
    )


def _token_option(kind: str) -> Any:
    return typer.Option(
        f"--{kind}-token",
        envvar=f"{kind.upper()}_TOKEN",
        show_envvar=True,
        help="Token, if the settings have no such table.",
    )


def _host_option(whose: str) -> Any:
    return typer.Option(help=f"{whose}, if the settings have no such table.")


def import_github(
    *,
    org: Organizations = None,
    plan: Plan = False,
    archived: Archived = False,
    forks: Forks = False,
    people: People = True,
    namespace: Namespace = None,
    instance: Annotated[str, _instance_option("github")] = "default",
    token: Annotated[str | None, _token_option("github")] = None,
    host: Annotated[str, _host_option("Host of GitHub")] = "github.com",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the repositories, teams and members of GitHub organizations.

    Repositories with a catalog-info.yaml bring its entities, others a component each. Entities that
    a push owns stay as they are. Many removals at once wait: see `factbook import apply`.

    \b
    Examples:
      export GITHUB_TOKEN=...
      factbook import github --org acme --plan
      factbook import github --org acme
    """
    options = {"archived": archived, "forks": forks, "people": people, "namespace": namespace}
    chosen = _choose_code_host(
        "github", instance, token, host, organizations=org or None, **options
    )
    run_chosen_import(chosen, database_url, plan=plan, as_json=as_json)


def import_gitlab(
    *,
    group: Groups = None,
    plan: Plan = False,
    archived: Archived = False,
    forks: Forks = False,
    people: People = True,
    namespace: Namespace = None,
    instance: Annotated[str, _instance_option("gitlab")] = "default",
    token: Annotated[str | None, _token_option("gitlab")] = None,
    host: Annotated[str, _host_option("Host of GitLab")] = "gitlab.com",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the projects, subgroups and members of GitLab groups.

    Projects with a catalog-info.yaml bring its entities, others a component each. Entities that
    a push owns stay as they are. Many removals at once wait: see `factbook import apply`.

    \b
    Examples:
      export GITLAB_TOKEN=...
      factbook import gitlab --group acme --plan
      factbook import gitlab --group acme/web --host gitlab.example.com
    """
    options = {"archived": archived, "forks": forks, "people": people, "namespace": namespace}
    chosen = _choose_code_host("gitlab", instance, token, host, groups=group or None, **options)
    run_chosen_import(chosen, database_url, plan=plan, as_json=as_json)


def import_gitea(
    *,
    org: Organizations = None,
    plan: Plan = False,
    archived: Archived = False,
    forks: Forks = False,
    people: People = True,
    namespace: Namespace = None,
    instance: Annotated[str, _instance_option("gitea")] = "default",
    token: Annotated[str | None, _token_option("gitea")] = None,
    host: Annotated[str, _host_option("Its host")] = "",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the repositories, teams and members of Gitea or Forgejo organizations.

    Repositories with a catalog-info.yaml bring its entities, others a component each. Entities
    that a push owns stay as they are. Many removals at once wait: see `factbook import apply`.

    \b
    Examples:
      export GITEA_TOKEN=...
      factbook import gitea --org acme --host git.example.com --plan
      factbook import gitea --org acme --host git.example.com
    """
    options = {"archived": archived, "forks": forks, "people": people, "namespace": namespace}
    chosen = _choose_code_host("gitea", instance, token, host, organizations=org or None, **options)
    run_chosen_import(chosen, database_url, plan=plan, as_json=as_json)


def _choose_code_host(
    kind: str, instance: str, token: str | None, host: str, **options: Any
) -> Chosen:
    """Make the import from a code host; omits options that are None."""
    given = {name: value for name, value in options.items() if value is not None}
    account = {"token": token, "host": host} if token else None
    return Chosen(kind, given, instance, account, f"{kind.upper()}_TOKEN")


def import_ldif(
    file: LdifFile,
    *,
    namespace: EntityNamespace = "default",
    people: Annotated[bool, typer.Option("--people/--no-people", help="Import people.")] = True,
    groups: Annotated[bool, typer.Option("--groups/--no-groups", help="Import groups.")] = True,
    plan: Plan = False,
    instance: LdifInstance = "default",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the people and groups of an LDIF file, as users and groups.

    A file that does not end with an empty line counts as cut off, and removes nothing.

    \b
    Examples:
      factbook import ldif people.ldif --plan
      ldapsearch -x -b dc=example,dc=org > people.ldif && factbook import ldif people.ldif
    """
    chosen: dict[str, Any] = {
        "path": str(file.absolute()),
        "namespace": namespace,
        "people": people,
        "groups": groups,
    }
    run_chosen_import(Chosen("ldif", chosen, instance), database_url, plan=plan, as_json=as_json)


def import_kubernetes(
    context: typer.Context,
    *,
    cluster: Cluster,
    namespaces: Namespaces = None,
    labels: Labels = None,
    resources: Resources = None,
    url: ClusterAddress = "",
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
        run_chosen_import(Chosen("kubernetes", chosen), database_url, plan=plan, as_json=as_json)
        return
    from factbook.importers.kubernetes import WORKLOADS_PART
    from factbook.operations.imports import default_rules, find_stated_names, push_snapshot

    with connect_server(context, push, token, push_word) as client:
        names = find_stated_names(client, f"kubernetes.{cluster}.{WORKLOADS_PART}", default_rules())
        reading = _read_cluster(chosen, names)
        parts = push_snapshot(
            client, reading.importer, reading.snapshot, default_rules(), dry_run=plan, remove=remove
        )
    if as_json:
        print_json(_pushed_json(reading, parts, plan=plan))
    else:
        _print_parts(reading, parts, plan=plan)
    check_whole({part.set: _pushed_state(part) for part in parts}, _DECIDE_ON_PUSH)


def _read_cluster(chosen: dict[str, Any], names: dict[str, str]) -> "OneReading":
    import asyncio
    import os

    from factbook.operations.imports import read_system_once, settings_in_cluster

    with show_progress("Reading") as show:
        settings = settings_in_cluster(settings_from(None), os.environ)
        return asyncio.run(read_system_once("kubernetes", chosen, settings, show, names))


def _print_parts(reading: "OneReading", parts: "list[PushedPart]", *, plan: bool) -> None:
    columns = ["Set", "State", "Added", "Updated", "Removed", "Unchanged", "Held", "Problems"]
    rows = [
        (
            part.set,
            _pushed_state(part),
            part.changes.added,
            part.changes.updated,
            part.changes.removed,
            part.changes.unchanged,
            len(part.held),
            len(part.problems),
        )
        for part in parts
    ]
    print_table(columns, rows)
    print_moves(parts)
    for word, number in sorted(reading.snapshot.left_out.items()):
        say(f"Left out: {number:,} {word}")
    problems = [str(problem) for part in parts for problem in part.problems]
    if problems:
        print_note(f"Problems: {len(problems)}")
        note_each(problems)
    for part in parts:
        if part.held:
            print_note(f"{part.set}: {len(part.held)} entities are kept, because {part.reason}:")
            note_each(part.held)
    say(f"{reading.calls:,} calls{' (plan: nothing was written)' if plan else ''}")


def _pushed_state(part: "PushedPart") -> str:
    return "held" if part.held else "complete" if part.complete else "partial"


def _pushed_json(reading: "OneReading", parts: "list[PushedPart]", *, plan: bool) -> dict[str, Any]:
    return {
        "importer": reading.importer,
        "plan": plan,
        "calls": reading.calls,
        "leftOut": dict(reading.snapshot.left_out),
        "sets": [
            {
                "set": part.set,
                "state": _pushed_state(part),
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


PartName = Annotated[
    str, typer.Argument(metavar="PART", help="As listed, e.g. github/acme.repositories.")
]

ShownName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A part as listed, or the id of an importer, e.g. github."),
]

ImporterName = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Id of an importer, e.g. github-internal. Default: all."),
]

app = typer.Typer(
    no_args_is_help=True,
    help="Import entities from other systems, and decide on removals that are held.",
    epilog=EXIT_CODES,
)


def importer_json(found: "ImporterDetail") -> dict[str, Any]:
    """Convert an importer, its runs, and its parts with their problems to JSON."""
    status, stored = found.status, found.stored
    every = status.importer.every if status else None
    return {
        "importer": found.id,
        "state": _importer_state(found),
        "problem": found.problem or None,
        "completeAt": iso_or_none(status.complete_at) if status else None,
        "nextRunAt": iso_or_none(status.next_at) if status else None,
        "intervalSeconds": None if every is None else every // SECOND,
        "createdBy": stored.created_by if stored else None,
        "updatedBy": stored.updated_by if stored else None,
        "runs": [_run_json(run) for run in found.runs],
        "parts": list(map(part_json, found.current)),
    }


def print_importer(found: "ImporterDetail") -> None:
    """Print the importer, its last runs, its parts and their problems."""
    say(f"{found.id}: {', '.join(_describe_importer(found))}")
    if found.problem:
        say(found.problem)
    runs = [
        (format_age(run.started_at), run.state, run.reason, run.calls, run.calls_left, run.error)
        for run in found.runs[:10]
    ]
    print_table(["Run", "State", "Why", "Calls", "Left", "Error"], runs)
    print_table(PART_COLUMNS, map(part_row, found.current))
    for part in found.current:
        for problem in part.problems:
            say(str(problem))


def _describe_importer(found: "ImporterDetail") -> Iterator[str]:
    yield _importer_state(found)
    if found.status is not None:
        status = found.status
        yield f"last complete run {format_age(status.complete_at) or 'never'}"
        if status.under_way is None and status.next_at is None:
            yield "next run when asked"
        elif (status.next_at or 0) > now():
            yield f"next run {format_age(status.next_at)}"
        else:
            yield "next run now"
    if found.stored is not None:
        yield f"last changed by {found.stored.updated_by}"


def _importer_state(found: "ImporterDetail") -> str:
    if found.status is not None:
        return found.status.state
    return "unusable" if found.problem else "not run by the service"


def _run_json(run: "ImportRun") -> dict[str, Any]:
    return {
        "id": run.id,
        "reason": run.reason,
        "state": run.state,
        "startedAt": iso_or_none(run.started_at),
        "endedAt": iso_or_none(run.ended_at),
        "calls": run.calls,
        "callsLeft": run.calls_left,
        "error": run.error or None,
    }


def list_imports(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List every part that was imported, with the state of its last reading.

    \b
    Examples:
      factbook import list
      factbook import list --json
    """
    from factbook.operations import imports

    found = run_on_database(database_url, imports.import_parts)
    rows = map(part_row, found)
    print_answer(list(map(part_json, found)), PART_COLUMNS, rows, as_json=as_json)


def show_import(name: ShownName, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Show an importer with its runs, or the problems and the held removals of a part.

    \b
    Examples:
      factbook import show github
      factbook import show github/acme.repositories --json
    """
    if "/" not in name:
        _print_importer(name, database_url, as_json=as_json)
        return
    part = _find_part(name, database_url)
    if as_json:
        print_json(part_json(part))
        return
    say(f"{part_name(part)}: {part.state}, read {format_age(part.read_at)}")
    for problem in part.problems:
        say(str(problem))
    _print_held(part)


def apply_removals(name: PartName, database_url: DatabaseUrl = None) -> None:
    """Remove the entities whose removal is held, and list them.

    \b
    Examples:
      factbook import apply github/acme.repositories
    """
    from factbook.operations import imports

    _decide_removals(imports.remove_held, name, database_url, "are left")


def discard_removals(name: PartName, database_url: DatabaseUrl = None) -> None:
    """Keep the entities whose removal is held, until they are found and go missing again.

    \b
    Examples:
      factbook import discard github/acme.repositories
    """
    from factbook.operations import imports

    _decide_removals(imports.keep_held, name, database_url, "stay")


def _decide_removals(
    decision: "Callable[[Backend, str, str], Coroutine[Any, Any, ImportPartRecord]]",
    name: str,
    database_url: str | None,
    result: str,
) -> None:
    """List the held removals of a part, and decide on exactly these."""
    part = _find_part(name, database_url)
    _print_held(part)
    record = run_on_database(database_url, decision, name, part.tag)
    say(f"{part_name(record)}: {record.items:,} entities {result}.")


def _print_importer(name: str, database_url: str | None, *, as_json: bool) -> None:
    from factbook.operations import imports

    found = run_on_database(database_url, imports.importer_detail, name)
    if as_json:
        print_json(importer_json(found))
    else:
        print_importer(found)


def _find_part(name: str, database_url: str | None) -> "ImportPartRecord":
    """Find the part of this name; raises CommandError for an unknown name."""
    from factbook.operations import imports

    known = {part_name(one): one for one in run_on_database(database_url, imports.import_parts)}
    found = known.get(name.removeprefix("import/"))
    if found is None:
        raise CommandError(f'There is no part "{name}".{suggestion(name, known)}')
    return found


def _print_held(part: "ImportPartRecord") -> None:
    if part.held:
        say(f"Held, because {part.reason}:")
        print_table(["Entity"], ((ref,) for ref in part.held))


def run_importers(
    name: ImporterName = None,
    *,
    plan: Plan = False,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Run the importers from the settings and from the browser now.

    The table [importers.github.internal] has the id github-internal, and [importers.github.default]
    the id github.

    \b
    Examples:
      factbook import run --plan
      factbook import run github
    """
    from factbook.operations import imports

    async def work(backend: "Backend", show: Callable[[str], None]) -> "list[ImportReport]":
        return await imports.import_configured(backend, name, plan=plan, show=show)

    found = run_imports(work, database_url)
    if as_json:
        print_json([report_json(one, plan=plan) for one in found])
    else:
        for one in found:
            print_report(one, plan=plan)
    check_reports(found)


# A command for each kind of importer, and one for configured importers.
_COMMANDS: Mapping[str, Callable[..., object]] = {
    "run": run_importers,
    "aws": import_aws,
    "catalog": import_catalog,
    "gitea": import_gitea,
    "github": import_github,
    "gitlab": import_gitlab,
    "kubernetes": import_kubernetes,
    "ldif": import_ldif,
    "list": list_imports,
    "show": show_import,
    "apply": apply_removals,
    "discard": discard_removals,
}
for name, command in _COMMANDS.items():
    app.command(name, epilog=EXIT_CODES)(command)
