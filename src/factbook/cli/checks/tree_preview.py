"""Results that the entities of a working tree would change, as a report for a pull request."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.cli.checks.working_tree import TreeContent, TreeEntity
from factbook.client import ApiError, Client
from factbook.client.calls import send
from factbook.errors import InputError
from factbook.schemas.results import EntityPreview, EntityPreviewResult

_PREVIEW: Final = "/api/tech-insights/v1/check-results/preview"
# What the service takes at once.
_MOST: Final = 500
_LARGEST: Final = 4 * 1024 * 1024
_LARGEST_ENVELOPE: Final = 1_024
_MOST_SHOWN: Final = 100
_ITEM: Final = re.compile(r"items\[(\d+)\]\.?(.*)")
_ELSEWHERE: Final = "not known from this tree"
# What Markdown, HTML and mentions of people are made of.
_SIGNS: Final = re.compile(r"([\\`*_{}\[\]()#+!|~<>&])")
_ENDS: Final = re.compile(r"[<>|`\s]")
_MOST_PATHS: Final = 50_000
_LONGEST_PATH: Final = 4_096
# What Python puts for the bytes of a name that are no UTF-8.
_HALVES: Final = re.compile(r"[\ud800-\udfff]")
_SO: Final = "so what checks say of the files of this tree is not known"


class TreePreview(NamedTuple):
    """Answer of the service about a tree, and the problems of what was left out.

    `answer` is None if nothing of the tree could be read.
    """

    answer: EntityPreview | None
    problems: list[str]

    @property
    def failing(self) -> list[str]:
        """The required checks that would fail, do not now, and are decided by the tree."""
        if self.answer is None:
            return []
        named = [one.check_id for one in self.answer.results if one.new_failure]
        more = self.answer.new_failures - len(named)
        return [*dict.fromkeys(named), *([f"and {more:,} more results"] if more > 0 else [])]

    def as_json(self) -> dict[str, Any]:
        """The preview in the form of `--json`."""
        answer = self.answer or EntityPreview([], 0, 0, [])
        return {**msgspec.to_builtins(answer), "problems": self.problems}


class SentPaths(NamedTuple):
    """The paths as JSON, or None and the reason for which they are not sent."""

    json: msgspec.Raw | None
    problem: str | None = None


def asked(client: Client, tree: TreeContent, named_set: str | None = None) -> TreePreview:
    """The results with the entities of a tree, without those that the service refuses.

    What is stored of those in `named_set` is told.
    """
    if len(tree.entities) > _MOST:
        raise InputError(
            f"The tree has {len(tree.entities)} entities, and {_MOST} are previewed at once; "
            "--path names a part of it."
        )
    entities, problems = tree.entities, list(tree.problems)
    paths = _paths(tree)
    if paths.problem:
        problems.append(paths.problem)
    while entities:
        try:
            return TreePreview(_answer(client, entities, paths.json, named_set), problems)
        except ApiError as error:
            refused = _refused(error, entities)
            if not refused:
                raise
            problems += [line for _, line in refused]
            left_out = {position for position, _ in refused}
            entities = [one for at, one in enumerate(entities) if at not in left_out]
    return TreePreview(None, problems)


def lines(preview: TreePreview) -> Iterator[str]:
    """The preview as text."""
    for one in (shown := _shown(preview))[:_MOST_SHOWN]:
        # On one line: a pipeline takes some lines for its commands.
        told = f": {' '.join(one.message.split())}" if one.message else ""
        link = f" ({one.fix.link})" if one.fix and one.fix.link else ""
        yield f"{_words(one)} {one.check_id} of {one.entity_ref}{told}{link}"
    if len(shown) > _MOST_SHOWN:
        yield f"and {len(shown) - _MOST_SHOWN:,} more"
    yield _summary(preview)


def markdown(preview: TreePreview) -> Iterator[str]:
    """The preview as a comment on a pull request."""
    yield f"**{_summary(preview)}**"
    shown = _shown(preview)
    if shown:
        yield ""
        yield "| Check | Entity | Result | What it says |"
        yield "| --- | --- | --- | --- |"
    yield from (f"| {' | '.join(_cells(one))} |" for one in shown[:_MOST_SHOWN])
    if len(shown) > _MOST_SHOWN:
        yield f"\nAnd {len(shown) - _MOST_SHOWN:,} more."
    if preview.problems:
        yield "\nNot previewed:\n"
        yield from (f"- {_text(one)}" for one in preview.problems[:_MOST_SHOWN])
        if len(preview.problems) > _MOST_SHOWN:
            yield f"- and {len(preview.problems) - _MOST_SHOWN:,} more"


def _cells(one: EntityPreviewResult) -> Iterator[str]:
    """The cells of a row: check, entity, result, and what is said about it."""
    yield f"{_text(one.title)} (`{_code(one.check_id)}`)"
    yield f"`{_code(one.entity_ref)}`"
    yield _text(_words(one))
    link = f"[How to fix it](<{_address(one.fix.link)}>)" if one.fix and one.fix.link else ""
    yield f"{_text(one.message or '')} {link}".strip()


def _paths(tree: TreeContent) -> SentPaths:
    """The paths that go with the entities of a tree."""
    if tree.paths is None:
        return SentPaths(None)
    items = msgspec.json.encode([one.entity for one in tree.entities])
    return _sent(tree.paths, _LARGEST - _LARGEST_ENVELOPE - len(items))


def _answer(
    client: Client,
    entities: Sequence[TreeEntity],
    paths: msgspec.Raw | None,
    named_set: str | None,
) -> EntityPreview:
    items = [one.entity for one in entities]
    body: dict[str, Any] = {"items": items, "paths": paths, "set": named_set}
    given = {name: value for name, value in body.items() if value is not None}
    return client.send(send("POST", _PREVIEW, EntityPreview, given))


def _refused(error: ApiError, entities: Sequence[TreeEntity]) -> list[tuple[int, str]]:
    """Positions and lines of the entities that the service refuses, if it refuses some."""
    found = []
    for problem in error.details.get("problems") or [] if error.status == 400 else []:
        match = _ITEM.fullmatch(problem["path"])
        if match and int(match[1]) < len(entities):
            position = int(match[1])
            place = f"{entities[position].origin}{match[2] and ', '}{match[2]}"
            found.append((position, f"{place}: {problem['message']}"))
    return found


def _shown(preview: TreePreview) -> list[EntityPreviewResult]:
    """The results to tell, the worst first; that a new entity passes is no news."""
    results = preview.answer.results if preview.answer else []
    told = [one for one in results if not (one.now is None and _is_fine(one))]
    return sorted(told, key=lambda one: (not one.new_failure, one.then != "fail", _is_fine(one)))


def _is_fine(one: EntityPreviewResult) -> bool:
    return one.then not in ("fail", "unknown")


def _words(one: EntityPreviewResult) -> str:
    """A change of a result: `pass → fail`, and why it does not count."""
    change = f"{one.now or 'new'} → {one.then}"
    if not one.decided and not _is_fine(one):
        return f"{change}, {_ELSEWHERE}"
    return f"{change}, advisory" if one.then == "fail" and one.severity == "advisory" else change


def _summary(preview: TreePreview) -> str:
    answer = preview.answer
    if answer is None:
        return "No entity could be previewed."
    entities = len(answer.entities)
    checked = f"{entities} {'entity' if entities == 1 else 'entities'} checked"
    changed = f"{answer.changed:,} {'result' if answer.changed == 1 else 'results'} would change"
    failures = (
        f"{answer.new_failures:,} new {'failure' if answer.new_failures == 1 else 'failures'}"
    )
    return f"{checked}; {changed}; {failures}"


def _text(text: str) -> str:
    """Text in a cell of a table, that is nothing but text."""
    plain = _SIGNS.sub(r"\\\1", " ".join(text.split()))
    # So that nobody is mentioned, and nothing becomes a link by itself.
    return plain.replace("@", "`@`").replace("://", "\\://").replace("www.", "www\\.")


def _code(text: str) -> str:
    """Text between back quotes, which end at a back quote, as a cell does at a bar."""
    return " ".join(text.split()).replace("`", "'").replace("|", "\\|")


def _address(link: str) -> str:
    """An address in a cell, without what would end it or the cell."""
    return _ENDS.sub(lambda sign: f"%{ord(sign[0]):02X}", link)


def _sent(paths: Sequence[str], room: int) -> SentPaths:
    """The paths, if they are as many and as long as the service takes in this many bytes."""
    if len(paths) > _MOST_PATHS:
        return SentPaths(
            None, f"The tree has {len(paths):,} files, more than {_MOST_PATHS:,}, {_SO}."
        )
    # As a code host shows the name of a file that is no text.
    text = [_HALVES.sub("\ufffd", path) for path in paths]
    if any(len(path) > _LONGEST_PATH for path in text):
        return SentPaths(None, f"A path has more than {_LONGEST_PATH:,} characters, {_SO}.")
    encoded = msgspec.json.encode(text)
    if len(encoded) > room:
        return SentPaths(None, f"The paths of {len(paths):,} files are too long together, {_SO}.")
    return SentPaths(msgspec.Raw(encoded))
