"""Digests: net changes of a week, in the published forms of Slack and Teams."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.checks import digests, state
from factbook.checks.digests import (
    EVERYTHING,
    Digest,
    DigestLevels,
    LevelMove,
    NetChange,
    StateChange,
)
from factbook.checks.results.result_queries import ResultAge
from factbook.clock import DAY, HOUR
from factbook.storage import Database
from tests.checks.scorecards import add_checks, document, effect, publish, put
from tests.facts.test_store import add_entities
from tests.service import NOON

TEAM, CHILD = "group:default/shop", "group:default/cart"
STATES = (state.PASS, state.FAIL, state.UNKNOWN, state.FAIL | state.EXEMPT)
changes = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from(STATES)), max_size=12
)
titles = st.text(min_size=1, max_size=300)


def change(check: str, entity: str, at: int, before: int, after: int) -> StateChange:
    return StateChange(check, entity, NOON + at, before, after)


@pytest.mark.slow
@given(changes)
def test_net_changes_lead_from_the_first_state_to_the_last(
    steps: Sequence[tuple[str, str, int]],
) -> None:
    now: dict[tuple[str, str], int] = {}
    told = []
    for day, (check, entity, after) in enumerate(steps):
        before = now.get((entity, check), state.PASS)
        if before != after:
            # So slowly that nothing flaps.
            told.append(change(check, entity, day * 4 * DAY, before, after))
            now[entity, check] = after
    found = {
        (one.entity, one.check): one.after for one in digests.net_changes(told, NOON + 60 * DAY)
    }
    assert found == {key: state.name_state(last) for key, last in now.items() if last != state.PASS}


def test_what_flaps_is_left_out_until_it_is_quiet() -> None:
    flips = [
        change("a", "x", hours * HOUR, before, after)
        for hours, before, after in (
            (0, state.PASS, state.FAIL),
            (1, state.FAIL, state.PASS),
            (2, state.PASS, state.FAIL),
        )
    ]
    assert digests.net_changes(flips, NOON + 3 * HOUR) == []
    assert digests.net_changes(flips, NOON + 26 * HOUR) == [NetChange("a", "x", "pass", "fail")]


def given_digest(*found: NetChange, levels: Sequence[LevelMove] = ()) -> Digest:
    link = "https://factbook.example.com"
    return Digest(TEAM, NOON - 7 * DAY, NOON, found, tuple(levels), ResultAge(NOON, []), link)


def test_a_message_says_what_fails_first_and_how_levels_moved() -> None:
    content = given_digest(
        NetChange("Owned", "component:default/a_b", "fail", "pass"),
        NetChange("Reviewed", "component:default/c", "pass", "fail"),
        levels=[LevelMove("Ready", {"": 2, "gold": 1}, {"": 1, "gold": 1, "bronze": 1})],
    )
    slack = digests.render_slack(content)
    assert slack["text"] == "2026-11-14 to 2026-11-21: 1 fail, 1 pass"
    assert [block["type"] for block in slack["blocks"]] == [
        "header",
        *["section"] * 3,
        "context",
        "actions",
    ]
    assert slack["blocks"][1]["text"] == {
        "type": "mrkdwn",
        "text": "*Fail now (1)*\n• Reviewed: component:default/c (was pass)",
    }
    assert slack["blocks"][3]["text"]["text"] == "*Levels*\n• Ready: no level 2 → 1, bronze 0 → 1"
    [attachment] = digests.render_teams(content)["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert "- Owned: component:default/a\\_b \\(was fail\\)" in [
        one["text"] for one in card["body"]
    ]
    assert card["actions"][0]["url"] == "https://factbook.example.com"


@given(titles, titles, st.integers(0, 60))
def test_messages_keep_the_limits_of_their_receivers(check: str, ref: str, count: int) -> None:
    found = [NetChange(check, f"{ref}{n}", "pass", "fail") for n in range(count)]
    content = given_digest(
        *found, levels=[LevelMove(check, {"": 1}, {"": n}) for n in range(2, 40)]
    )
    slack = digests.render_slack(content)
    assert len(slack["blocks"]) <= 50
    for block in slack["blocks"]:
        text = block.get("text", {}).get("text", "")
        assert len(text) <= 3_000
        assert not re.search("[<>]|&(?!amp;|lt;|gt;)", text)
    assert len(json.dumps(digests.render_teams(content), ensure_ascii=False)) < 28_000


def test_a_line_is_cut_between_characters_however_these_are_written() -> None:
    found = [NetChange("&" * 200, "x", "pass", "fail"), NetChange("a", "<" * 60, "pass", "fail")]
    blocks = digests.render_slack(given_digest(*found))["blocks"]
    first, second = blocks[1]["text"]["text"].splitlines()[1:]
    assert first == "• " + "&amp;" * 35 + "…"
    assert second == "• a: " + "&lt;" * 44 + "…"
    card = digests.render_teams(given_digest(*found[:1]))["attachments"][0]["content"]
    assert card["body"][-2]["text"] == "- " + "&" * 179 + "…"
    starred = digests.render_teams(given_digest(NetChange("*" * 200, "x", "pass", "fail")))
    assert starred["attachments"][0]["content"]["body"][-2]["text"] == "- " + "\\*" * 89 + "…"


def test_nothing_is_said_when_nothing_changed() -> None:
    assert given_digest().is_empty
    assert not given_digest(NetChange("a", "x", "pass", "unknown")).is_empty


def test_a_test_says_so_also_when_nothing_changed() -> None:
    content = given_digest()._replace(owner=EVERYTHING, is_test=True)
    slack = digests.render_slack(content)
    assert slack["blocks"][0]["text"]["text"] == "Test: checks of the whole catalog"
    assert slack["text"] == "2026-11-14 to 2026-11-21: nothing changed"
    cut = given_digest(NetChange("a", "x", "pass", "fail"))._replace(is_cut=True)
    assert digests.render_slack(cut)["text"].endswith(
        "1 fail (only the first changes; there were too many)"
    )


@pytest.mark.both_databases
async def test_a_digest_is_about_the_entities_of_a_group_and_those_below_it(
    database: Database,
) -> None:
    await add_checks(database, "c1", "c2", "c3")
    await put(database, document())
    await publish(database)
    await effect(database)
    refs = ("component:default/a", "component:default/b", CHILD)
    await add_entities(database, *refs)

    def work(tx: Any) -> None:
        tx.insert("relations", ("source_id", "type", "target_ref"), [(3, "childOf", TEAM)])
        states = [(1, CHILD, b"\1", None), (2, "group:default/other", b"\1", None)]
        tx.insert("check_states", ("entity_id", "owner", "states", "due_at"), states)
        columns = ("check_id", "entity_id", "at", "before", "after", "why")
        rows = [
            ("c1", 1, NOON + HOUR, state.PASS, state.FAIL, "{}"),
            ("c1", 2, NOON + HOUR, state.PASS, state.FAIL, "{}"),
            ("c2", 1, NOON - HOUR, state.PASS, state.FAIL, "{}"),
        ]
        tx.insert("check_changes", columns, rows)
        counts = ("slot", "owner", "system", "kind", "level", "entities", "scored", "score")
        tx.insert("scorecard_counts", counts, [(1, CHILD, "", "component", 1, 1, 1, 90)])

    await database.write(work)
    end = NOON + 2 * DAY

    async def told(owner: str, before: DigestLevels) -> Digest:
        return (await digests.read_digest_of(database, owner, NOON, end, before, end))[0]

    before = {"readiness": {"silver": 1}}
    found = await told(TEAM, before)
    assert found.changes == (NetChange("c1", refs[0], "pass", "fail"),)
    assert found.levels == (LevelMove("Readiness", {"silver": 1}, {"bronze": 1}),)
    # A scorecard of which nothing was told before is nothing to compare with.
    assert (await told(TEAM, {})).levels == ()
    assert await digests.read_digest_levels(database, TEAM, end) == {"readiness": {"bronze": 1}}
    assert (await told("group:default/none", {})).is_empty
    everything = await told(EVERYTHING, before)
    assert [one.entity for one in everything.changes] == [refs[0], refs[1]]
    assert everything.levels == found.levels
