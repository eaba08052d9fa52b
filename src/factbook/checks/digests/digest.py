"""Digests: what changed for a team in a period, as messages for Slack and Microsoft Teams.

A check that failed and passes again by the end has not changed, and one that flaps is left out.
Teams takes Adaptive Cards in the form of its workflows, which replace the connectors of before.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from factbook.checks import state
from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE
from factbook.checks.results.result_age import ResultAge
from factbook.checks.states import flaps
from factbook.clock import iso, minute
from factbook.schemas.events import DigestForm

# Entities by the id of their level, by scorecard.
DigestLevels = Mapping[str, Mapping[str, int]]

# The owner of a digest about the whole catalog.
EVERYTHING: Final = ""

# What a message names; the rest is counted.
_NAMED: Final = 15
# Slack takes 150 characters of a header and 3,000 of a section.
_LONGEST_HEADER: Final = 150
_LONGEST_LINE: Final = 180
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]()#>~|])")


class StateChange(NamedTuple):
    """A change of a check for an entity, as the store has it."""

    check: str
    entity: str
    at: int
    before: int
    after: int


class NetChange(NamedTuple):
    """A check of an entity that ended the period in another state than it began in."""

    check: str
    entity: str
    before: str
    after: str


class LevelMove(NamedTuple):
    """Entities by level of a scorecard, before and after; "" is below the first level."""

    scorecard: str
    before: Mapping[str, int]
    after: Mapping[str, int]


class Digest(NamedTuple):
    """Changes for the entities of an owner and of all groups below it, or of everybody.

    `is_cut`: there were more changes than are told. `is_test`: somebody tries it out.
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
        """True if nothing changed, and nothing is to be said."""
        return not self.changes and not self.levels


def net(changes: Iterable[StateChange], now: int) -> list[NetChange]:
    """Net changes of changes, which come in order, in the order of entities."""
    found: dict[tuple[str, str], list[StateChange]] = {}
    for one in changes:
        found.setdefault((one.entity, one.check), []).append(one)
    left = []
    for (entity, check), some in sorted(found.items()):
        before, after = state.name_state(some[0].before), state.name_state(some[-1].after)
        if before != after and not flaps.is_flapping([one.at for one in some], now):
            left.append(NetChange(check, entity, before, after))
    return left


def message(digest: Digest, form: DigestForm) -> dict[str, Any]:
    """The body that is sent to an incoming webhook."""
    return slack(digest) if form == "slack" else teams(digest)


def slack(digest: Digest) -> dict[str, Any]:
    """A message of blocks, with a text for notifications."""
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain(_title(digest)[:_LONGEST_HEADER])}
    ]
    for heading, lines in _sections(digest):
        escaped = "\n".join(f"• {_cut(line, _slack_text)}" for line in lines)
        text = {"type": "mrkdwn", "text": f"*{_slack_text(heading)}*\n{escaped}"}
        blocks.append({"type": "section", "text": text})
    blocks.append({"type": "context", "elements": [_plain(_as_of(digest))]})
    if digest.link:
        button = {"type": "button", "text": _plain("Open"), "url": digest.link}
        blocks.append({"type": "actions", "elements": [button]})
    return {"text": _summary(digest), "blocks": blocks}


def teams(digest: Digest) -> dict[str, Any]:
    """A message with an Adaptive Card, as the workflows of Teams take it."""
    title = _block(_teams_text(_title(digest)), weight="Bolder", size="Medium")
    body = [title, _block(_summary(digest), isSubtle=True)]
    for heading, lines in _sections(digest):
        body.append(_block(heading, weight="Bolder"))
        body += [_block(f"- {_cut(line, _teams_text)}", spacing="None") for line in lines]
    body.append(_block(_teams_text(_as_of(digest)), isSubtle=True))
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


def _title(digest: Digest) -> str:
    about = f"of {digest.owner}" if digest.owner else "of the whole catalog"
    return f"{'Test: c' if digest.is_test else 'C'}hecks {about}"


def _summary(digest: Digest) -> str:
    counts = dict.fromkeys(("fail", "pass", "unknown"), 0)
    for one in digest.changes:
        if one.after in counts:
            counts[one.after] += 1
    told = ", ".join(f"{count} {_MEANINGS[word]}" for word, count in counts.items() if count)
    days = f"{iso(digest.since)[:10]} to {iso(digest.until)[:10]}"
    if digest.is_empty:
        return f"{days}: nothing changed"
    more = ", of the first changes alone, as there were too many" if digest.is_cut else ""
    return f"{days}: {told or ('levels changed' if digest.levels else 'changed')}{more}"


def _as_of(digest: Digest) -> str:
    """The age of the results and levels."""
    stale = ", ".join(digest.age.stale_sources[:_NAMED])
    return f"As of {minute(digest.age.as_of)}" + (
        f", stale: no new data from {stale}" if stale else ""
    )


def _sections(digest: Digest) -> list[tuple[str, list[str]]]:
    """Headings with their lines: what fails first."""
    found = [
        (f"{_HEADINGS[word]} ({len(some)})", _lines(some))
        for word in _HEADINGS
        if (some := [one for one in digest.changes if one.after == word])
    ]
    if digest.levels:
        found.append(("Levels", [_move(one) for one in digest.levels[:_NAMED]]))
    return found


def _lines(changes: Sequence[NetChange]) -> list[str]:
    named = [f"{one.check}: {one.entity} (was {one.before})" for one in changes[:_NAMED]]
    more = len(changes) - len(named)
    return [*named, f"and {more} more"] if more else named


def _move(one: LevelMove) -> str:
    names = list(dict.fromkeys([*one.before, *one.after]))
    told = ", ".join(
        f"{name or NO_LEVEL_TITLE} {one.before.get(name, 0)} → {one.after.get(name, 0)}"
        for name in names
        if one.before.get(name, 0) != one.after.get(name, 0)
    )
    return f"{one.scorecard}: {told}"


def _cut(text: str, escaped: Callable[[str], str]) -> str:
    """The text as a receiver wants it, or as much of it as a line has room for.

    One character is written as several, of which none is left out.
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


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _block(text: str, **members: Any) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True, **members}


def _slack_text(text: str) -> str:
    """Text that mentions nobody and links to nothing: these three characters begin all of it."""
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(char, entity)
    return text


def _teams_text(text: str) -> str:
    """Text without what its Markdown means."""
    return _MARKDOWN.sub(r"\\\1", text)


_HEADINGS: Final = {
    "fail": "Fail now",
    "pass": "Pass now",
    "unknown": "Are unknown now",
    "exempt": "Are exempt now",
    "not-applicable": "Do not apply any more",
}
_MEANINGS: Final = {"fail": "fail", "pass": "pass", "unknown": "are unknown"}
