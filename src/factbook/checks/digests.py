"""Digests: a team's changes in a period, as messages for Slack and Microsoft Teams.

A check that failed and passes again by the end counts as unchanged; flapping checks are left out.
Teams receives Adaptive Cards through workflows, which replaced its connectors.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from factbook.catalog.store import related_entities, stored_entities
from factbook.checks import scorecard_figures, state
from factbook.checks.definitions.definition_versions import check_store, scorecard_store
from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE, Scorecard, parse_scorecard
from factbook.checks.results import level_store, result_queries, state_store
from factbook.checks.results.grader import GroupHierarchy
from factbook.checks.results.result_queries import ResultAge
from factbook.clock import iso, minute
from factbook.schemas.events import DigestForm
from factbook.storage import Database

# The owner of a digest about the whole catalog.
EVERYTHING: Final = ""
# Items listed per section of a message; the rest is counted.
_NAMED: Final = 15
# Slack allows 150 characters in a header and 3,000 in a section.
_LONGEST_HEADER: Final = 150
_LONGEST_LINE: Final = 180
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]()#>~|])")
_MEANINGS: Final = {"fail": "fail", "pass": "pass", "unknown": "are unknown"}
# Changes per period; later ones are left out.
_MOST_CHANGES: Final = 20_000
# Changes read, newest first: pages have to be fast even after a busy week.
MOST_RECENT_CHECKS: Final = 3_000


# Number of entities by level id, by scorecard id.
DigestLevels = Mapping[str, Mapping[str, int]]


class StateChange(NamedTuple):
    """A stored change of a check for an entity."""

    check: str
    entity: str
    at: int
    before: int
    after: int


class NetChange(NamedTuple):
    """A check of an entity whose state differs between start and end of the period."""

    check: str
    entity: str
    before: str
    after: str


class LevelMove(NamedTuple):
    """Entities by level of a scorecard, before and after; "" means below the first level."""

    scorecard: str
    before: Mapping[str, int]
    after: Mapping[str, int]


class Digest(NamedTuple):
    """Changes for the entities of an owner and its subgroups, or of everyone.

    `is_cut`: there were too many changes, and the last ones are left out. `is_test`: sent as a
    test.
    """

    owner: str
    since: int
    until: int
    changes: tuple[NetChange, ...]
    levels: tuple[LevelMove, ...]
    age: ResultAge
    link: str | None = None
    is_cut: bool = False
    is_test: bool = False

    @property
    def is_empty(self) -> bool:
        """True if no state or level changed."""
        return not self.changes and not self.levels


def net_changes(changes: Iterable[StateChange], now: int) -> list[NetChange]:
    """The net of changes, which are in order of time; sorted by entity and check."""
    found: dict[tuple[str, str], list[StateChange]] = {}
    for one in changes:
        found.setdefault((one.entity, one.check), []).append(one)
    left = []
    for (entity, check), some in sorted(found.items()):
        before, after = state.name_state(some[0].before), state.name_state(some[-1].after)
        if before != after and not state_store.is_flapping([one.at for one in some], now):
            left.append(NetChange(check, entity, before, after))
    return left


def render_digest(digest: Digest, form: DigestForm) -> dict[str, Any]:
    """The body to send to an incoming webhook."""
    return render_slack(digest) if form == "slack" else render_teams(digest)


def render_slack(digest: Digest) -> dict[str, Any]:
    """A Slack message of blocks, with a text for notifications."""
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _escape_plain(_write_title(digest)[:_LONGEST_HEADER])}
    ]
    for heading, lines in _list_sections(digest):
        escaped = "\n".join(f"• {_cut_text(line, _escape_slack)}" for line in lines)
        text = {"type": "mrkdwn", "text": f"*{_escape_slack(heading)}*\n{escaped}"}
        blocks.append({"type": "section", "text": text})
    blocks.append({"type": "context", "elements": [_escape_plain(_write_age(digest))]})
    if digest.link:
        button = {"type": "button", "text": _escape_plain("Open"), "url": digest.link}
        blocks.append({"type": "actions", "elements": [button]})
    return {"text": _write_summary(digest), "blocks": blocks}


def render_teams(digest: Digest) -> dict[str, Any]:
    """A message with an Adaptive Card, as Teams workflows expect."""
    title = _make_block(_escape_teams(_write_title(digest)), weight="Bolder", size="Medium")
    body = [title, _make_block(_write_summary(digest), isSubtle=True)]
    for heading, lines in _list_sections(digest):
        body.append(_make_block(heading, weight="Bolder"))
        body += [
            _make_block(f"- {_cut_text(line, _escape_teams)}", spacing="None") for line in lines
        ]
    body.append(_make_block(_escape_teams(_write_age(digest)), isSubtle=True))
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    if digest.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": digest.link}]
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _write_title(digest: Digest) -> str:
    about = f"of {digest.owner}" if digest.owner else "of the whole catalog"
    return f"{'Test: c' if digest.is_test else 'C'}hecks {about}"


def _write_summary(digest: Digest) -> str:
    counts = dict.fromkeys(("fail", "pass", "unknown"), 0)
    for one in digest.changes:
        if one.after in counts:
            counts[one.after] += 1
    told = ", ".join(f"{count} {_MEANINGS[word]}" for word, count in counts.items() if count)
    days = f"{iso(digest.since)[:10]} to {iso(digest.until)[:10]}"
    if digest.is_empty:
        return f"{days}: nothing changed"
    more = " (only the first changes; there were too many)" if digest.is_cut else ""
    return f"{days}: {told or ('levels changed' if digest.levels else 'changed')}{more}"


def _write_age(digest: Digest) -> str:
    stale = ", ".join(digest.age.stale_sources[:_NAMED])
    return f"As of {minute(digest.age.as_of)}" + (
        f", stale: no new data from {stale}" if stale else ""
    )


def _list_sections(digest: Digest) -> list[tuple[str, list[str]]]:
    """Headings with their lines, failures first."""
    sections: list[tuple[str, list[str]]] = []
    for word, heading in _HEADINGS.items():
        changes = [change for change in digest.changes if change.after == word]
        if not changes:
            continue
        lines = [f"{one.check}: {one.entity} (was {one.before})" for one in changes[:_NAMED]]
        if len(changes) > _NAMED:
            lines.append(f"and {len(changes) - _NAMED} more")
        sections.append((f"{heading} ({len(changes)})", lines))
    if digest.levels:
        sections.append(("Levels", [_write_move(move) for move in digest.levels[:_NAMED]]))
    return sections


def _write_move(one: LevelMove) -> str:
    names = list(dict.fromkeys([*one.before, *one.after]))
    told = ", ".join(
        f"{name or NO_LEVEL_TITLE} {one.before.get(name, 0)} → {one.after.get(name, 0)}"
        for name in names
        if one.before.get(name, 0) != one.after.get(name, 0)
    )
    return f"{one.scorecard}: {told}"


def _cut_text(text: str, escaped: Callable[[str], str]) -> str:
    """The escaped text, cut to the length of a line.

    Characters that are escaped as several are kept or dropped as a whole.
    """
    if len(whole := escaped(text)) <= _LONGEST_LINE:
        return whole
    found, room = "", _LONGEST_LINE - 1
    for char in text[:_LONGEST_LINE]:
        room -= len(escaped(char))
        if room < 0:
            break
        found += escaped(char)
    return f"{found}…"


def _escape_plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _make_block(text: str, **members: Any) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True, **members}


def _escape_slack(text: str) -> str:
    """Escape the three characters that start all mentions and links."""
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(char, entity)
    return text


def _escape_teams(text: str) -> str:
    """Escape Markdown."""
    return _MARKDOWN.sub(r"\\\1", text)


_HEADINGS: Final = {
    "fail": "Fail now",
    "pass": "Pass now",
    "unknown": "Are unknown now",
    "exempt": "Are exempt now",
    "not-applicable": "No longer apply",
}


async def read_digest_of(
    database: Database,
    owner: str,
    since: int,
    until: int,
    before: DigestLevels,
    now: int,
    public_url: str | None = None,
) -> tuple[Digest, DigestLevels]:
    """The digest of an owner and its subgroups, or of everyone, and the current levels.

    It links to the owner's scorecards if the service knows its own address. `before` are the levels
    of the previous digest: scorecards that it lacks are left out.
    """
    owners = await _list_owners_below(database, owner)
    changes = await _read_owner_changes(database, owners, since, until)
    levels, cards = await _read_owner_levels(database, owners, now)
    moves = [
        LevelMove(cards[id_].title, before[id_], own)
        for id_, own in levels.items()
        if id_ in before and before[id_] != own
    ]
    link = None
    if public_url is not None:
        page = "/scorecards"
        if (
            owner != EVERYTHING
            and await stored_entities.read_entity_id(database, owner) is not None
        ):
            parts = re.split("[:/]", owner, maxsplit=2)
            page = f"/catalog/{'/'.join(quote(part, safe='') for part in parts)}#standing"
        link = public_url + page
    digest = Digest(
        owner,
        since,
        until,
        tuple(net_changes(changes[:_MOST_CHANGES], until)),
        tuple(moves),
        await result_queries.read_age_of_checks(database, None, now),
        link,
        is_cut=len(changes) > _MOST_CHANGES,
    )
    return digest, levels


async def read_digest_levels(database: Database, owner: str, now: int) -> DigestLevels:
    """The current levels of an owner's entities."""
    return (await _read_owner_levels(database, await _list_owners_below(database, owner), now))[0]


async def _list_owners_below(database: Database, owner: str) -> list[str] | None:
    """The owner and its subgroups; None for everyone."""
    if owner == EVERYTHING:
        return None
    return sorted(GroupHierarchy(await related_entities.read_group_parents(database)).within(owner))


async def _read_owner_changes(
    database: Database, owners: Sequence[str] | None, since: int, until: int
) -> list[StateChange]:
    """The changes of the period, at most one more than a digest holds."""
    if owners is None:
        rows = await database.search(_EVERY_CHANGE, (since, until, _MOST_CHANGES + 1))
    else:
        rows = await database.search(_CHANGES, (list(owners), since, until, _MOST_CHANGES + 1))
    refs = await stored_entities.read_refs_of_ids(database, {row[1] for row in rows})
    titles = {one.id: one.title for one in await check_store.everything(database)}
    return [
        StateChange(titles[check], refs[entity], *rest)
        for check, entity, *rest in rows
        if entity in refs and check in titles
    ]


async def _read_owner_levels(
    database: Database, owners: Sequence[str] | None, now: int
) -> tuple[dict[str, dict[str, int]], dict[str, Scorecard]]:
    """Entities by level for each scorecard in effect, and these scorecards."""
    levels, cards = {}, {}
    for stored in await scorecard_store.everything(database):
        if stored.slot is None or stored.published is None:
            continue
        card = parse_scorecard(stored.published)
        if card.is_effective(now):
            tally = await level_store.count_all_levels(database, stored.slot, owners)
            levels[card.id] = dict(scorecard_figures.compute_figures(card, tally).levels)
            cards[card.id] = card
    return levels, cards


class RecentChanges(NamedTuple):
    """Numbers of entities by check and new state, as a word.

    Flapping results, and results that are back in their old state, don't count. `is_cut`: there
    were more changes than were read, and only the newest count.
    """

    counts: Mapping[str, Mapping[str, int]]
    is_cut: bool

    def to(self, word: str) -> dict[str, int]:
        """Number of entities that changed to a state, by check."""
        return {check: own[word] for check, own in self.counts.items() if own.get(word)}


async def count_recent_changes(
    database: Database, time: int, now: int, most: int = MOST_RECENT_CHECKS
) -> RecentChanges:
    """The changes since a time, for entities that still exist."""
    rows = await database.search(_SINCE, (time, now, most + 1))
    # Oldest first, for the net changes.
    changes = [StateChange(check, str(entity), *rest) for check, entity, *rest in rows[-most:]]
    counts: dict[str, Counter[str]] = {}
    for one in net_changes(changes, now):
        counts.setdefault(one.check, Counter())[one.after] += 1
    return RecentChanges(counts, is_cut=len(rows) > most)


_CHANGES: Final = """
SELECT c.check_id, c.entity_id, c.at, c.before, c.after
FROM check_changes c JOIN check_states s ON s.entity_id = c.entity_id
WHERE s.owner IN LIST(?) AND c.at > ? AND c.at <= ? ORDER BY c.at, c.id LIMIT ?
"""

_EVERY_CHANGE: Final = """
SELECT check_id, entity_id, at, before, after FROM check_changes
WHERE at > ? AND at <= ? ORDER BY at, id LIMIT ?
"""

# The time index returns the newest in order. Deleted entities have no states.
_SINCE: Final = """
SELECT c.check_id, c.entity_id, c.at, c.before, c.after FROM (
    SELECT id, check_id, entity_id, at, before, after FROM check_changes
    WHERE at > ? AND at <= ? ORDER BY at DESC, id DESC LIMIT ?
) c JOIN check_states s ON s.entity_id = c.entity_id ORDER BY c.at, c.id
"""
