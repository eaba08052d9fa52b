"""Reading of single repositories again, after events about them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, Self

import msgspec

from factbook.importers.code_host import parts
from factbook.importers.code_host.names import former_names, present_origins
from factbook.importers.code_host.parts import RepositoryPart
from factbook.importers.code_host.places import known_places, named, with_known_groups
from factbook.importers.code_host.repository import Place
from factbook.importers.github import entities, organization, queries
from factbook.importers.github.answers import ListedRepository
from factbook.importers.github.options import GithubImportOptions
from factbook.importers.github.owners import TeamOwners
from factbook.importers.snapshot import ReadingProblem, Snapshot, SnapshotPart
from factbook.integrations.github.answers import decoded
from factbook.integrations.github.graphql import Error, GithubApi
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

_AT_ONCE: Final = 25


class RepositoryHint(NamedTuple):
    """Repository that an event was about: its node id, and its path there."""

    node: str
    slug: str

    def __str__(self) -> str:
        return f"{self.node} {self.slug}"

    @classmethod
    def of(cls, text: str) -> Self:
        """The hint that was written so."""
        node, _, slug = text.partition(" ")
        return cls(node, slug)

    @property
    def login(self) -> str:
        """The owner of the repository."""
        return self.slug.partition("/")[0]


@dataclass
class _Found:
    """Answers about the hinted repositories of one organization."""

    nodes: dict[int, ListedRepository] = field(default_factory=dict)
    errors: dict[int, list[Error]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    problems: list[ReadingProblem] = field(default_factory=list)


async def reread(api: GithubApi, options: GithubImportOptions, hints: Sequence[str]) -> Snapshot:
    """A snapshot of nothing but the hinted repositories, as GitHub shows them now.

    One that GitHub does not know is lost, as are those that the credential may not see any more:
    they look the same. Any other failure leaves it unread.
    """
    logins = {login.lower(): login for login in options.organizations}
    found = {login: _Found() for login in logins.values()}
    told = [RepositoryHint.of(text) for text in hints]
    wanted = [hint for hint in told if hint.login.lower() in logins]
    for start in range(0, len(wanted), _AT_ONCE):
        await _ask(api, options, wanted[start : start + _AT_ONCE], logins, found)
    made: list[SnapshotPart] = []
    places = await known_places(api.memory, api.host, logins.values(), options.namespace)
    for place in places:
        one = found[place.login]
        if one.nodes or one.lost or one.problems:
            known = await with_known_groups(api.memory, place) if options.people else place
            made += await _parts(api, options, known, one)
    return Snapshot(tuple(made))


async def _ask(
    api: GithubApi,
    options: GithubImportOptions,
    hints: Sequence[RepositoryHint],
    logins: Mapping[str, str],
    found: Mapping[str, _Found],
) -> None:
    """Ask for repositories, and sort the answers by the organizations of the hints."""
    document = queries.some_repositories(len(options.files))
    variables = {**organization.file_variables(options), "ids": [hint.node for hint in hints]}
    told = await api.ask(document, variables)
    nodes = decoded(told.data.get("nodes", b""), list[msgspec.Raw]) or []
    by_place: dict[object, list[Error]] = {}
    for error in told.errors:
        place = error.path[1] if len(error.path) > 1 and error.path[0] == "nodes" else None
        by_place.setdefault(place, []).append(error)
    for place, hint in enumerate(hints):
        node = decoded(nodes[place], ListedRepository) if place < len(nodes) else None
        errors = by_place.get(place, [])
        owner = node.name_with_owner.partition("/")[0].lower() if node else ""
        of_hint = found[logins[hint.login.lower()]]
        if node is not None and owner in logins:
            one = found[logins[owner]]
            one.nodes[node.database_id] = node
            one.errors[node.database_id] = errors
            continue
        missing = told.failure or (errors[0].missing if errors else UNUSABLE)
        if node is not None or missing.outcome is Outcome.NOT_FOUND:
            # It is with an owner that is not imported, or nowhere.
            of_hint.lost.add(hint.slug)
        else:
            text = f"it cannot be read again: {missing.reason}"
            of_hint.problems.append(ReadingProblem(f"{api.host}/{hint.slug}", text))


async def _parts(
    api: GithubApi, options: GithubImportOptions, place: Place, found: _Found
) -> list[SnapshotPart]:
    nodes = list(found.nodes.values())
    hosted = await named(api.memory, place, map(entities.hosted, nodes), complete=False)
    former = await former_names(api.memory, place, hosted)
    owners = await TeamOwners.kept(api.memory, place, expected=options.people)
    part = RepositoryPart(
        place,
        "repository",
        "repositories",
        partial(owners.of_repository, place),
        former,
        options.people_from,
    )
    roots = {
        one.database_id: organization.root(one, options, _missing(found, one)) for one in nodes
    }
    files = organization.hosted_files(api, options, nodes)
    wanted = parts.chosen(hosted, options, Counter(), "repositories")
    await part.read(wanted, roots, files, whole=False)
    await files.remember()
    made = part.part(None, ())
    read = {place.origin_of(one.slug) for one in hosted}
    # A former name may be that of another repository by now.
    present = await present_origins(api.memory, place)
    read.update(*(former.get(origin, frozenset()) - present for origin in read.copy()))
    some = SnapshotPart(
        made.key,
        not found.problems,
        made.items,
        (*made.problems, *found.problems),
        made.unread,
        former=former,
        only=frozenset(read),
        lost=frozenset(map(place.origin_of, found.lost)) - read,
        stand_ins=made.stand_ins,
    )
    return [some, *part.people(some)]


def _missing(found: _Found, one: ListedRepository) -> list[Missing]:
    return [error.missing for error in found.errors[one.database_id]]
