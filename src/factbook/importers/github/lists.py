"""Listings of an organization: read to their end, or told to be incomplete."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from factbook.importers.github.answers import ListingAnswer, OrganizationPage
from factbook.integrations.github.answers import decoded
from factbook.integrations.github.graphql import Error, GithubApi, GithubQueryResult
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Missing, Outcome

_LEAST: Final = 5
# Pages of an organization with a hundred thousand repositories.
_MOST_PAGES: Final = 4_000


class _Numbered(Protocol):
    database_id: int


Node = TypeVar("Node", bound=_Numbered)


class ListingQuery(NamedTuple):
    """Query of a listing: its document, its variables, and the size of its pages."""

    document: str
    variables: Mapping[str, Any]
    size: int


@dataclass
class Listing(Generic[Node]):
    """The nodes by id in the order of the list, and the reason if it is not complete.

    `errors` are those of single fields, by node and path below it.
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    missing: Missing | None = None
    errors: dict[int, list[Error]] = field(default_factory=dict)
    rights: set[str] = field(default_factory=set)
    total: int = 0  # the largest that a page has told: a later page may be wrong


async def listing(
    api: GithubApi,
    login: str,
    query: ListingQuery,
    type_: type[Node],
    show: Callable[[int, int], None] = lambda done, total: None,
) -> Listing[Node]:
    """Every node of a connection of an organization, asked for by `query`.

    `show` is told how many of how many have come.
    Pages that are too heavy are made smaller. A page that fails, a node that is hidden and a list
    with fewer nodes than it counts make the listing incomplete.
    """
    found = Listing[Node]()
    size, after = query.size, None
    for _ in range(_MOST_PAGES):
        variables = {**query.variables, "login": login, "size": size, "after": after}
        told = await api.ask(query.document, variables)
        if told.failure and _is_too_heavy(told) and size > _LEAST:
            size = max(_LEAST, size // 2)
            continue
        page = _page(told, found)
        if page is None:
            return found
        before, found.total = len(found.nodes), max(found.total, page.total_count)
        _take(found, page, told.errors, type_)
        show(len(found.nodes), page.total_count)
        after = page.page_info.end_cursor
        if not page.page_info.has_next_page:
            return _ended(found)
        if after is None or len(found.nodes) == before:
            break
    found.missing = found.missing or REPEATED
    return found


def _is_too_heavy(told: GithubQueryResult) -> bool:
    too_large = told.failure is not None and told.failure.outcome is Outcome.TOO_LARGE
    return told.too_heavy or too_large


def _page(told: GithubQueryResult, found: Listing[Any]) -> OrganizationPage | None:
    """The page of an answer; None, with the reason in the listing, if there is none."""
    answer: ListingAnswer | None = decoded(told.data.get("organization", b""), ListingAnswer)
    if answer is None or answer.page is None:
        errors = [error.missing for error in told.errors]
        found.missing = told.failure or (errors[0] if errors else UNUSABLE)
        return None
    if answer.viewer_is_a_member:
        found.rights.add("membership")
    if answer.viewer_can_administer:
        found.rights.add("administration")
    return answer.page


def _take(
    found: Listing[Node], page: OrganizationPage, errors: Sequence[Error], type_: type[Node]
) -> None:
    """Add the nodes of a page, with the errors of each."""
    by_place: dict[int, list[Error]] = {}
    for error in errors:
        match error.path:
            case ("organization", "page", "nodes", int(place), *_):
                by_place.setdefault(place, []).append(error)
            case _:
                found.missing = found.missing or error.missing
    for place, raw in enumerate(page.nodes):
        node = decoded(raw, type_)
        if node is None:
            of_node = by_place.get(place)
            found.missing = found.missing or (of_node[0].missing if of_node else UNUSABLE)
            continue
        found.nodes[node.database_id] = node
        if place in by_place:
            found.errors[node.database_id] = by_place[place]


def _ended(found: Listing[Node]) -> Listing[Node]:
    if len(found.nodes) < found.total and found.missing is None:
        text = f"{len(found.nodes):,} of {found.total:,} were listed"
        found.missing = Missing(Outcome.INCOMPLETE, text)
    return found
