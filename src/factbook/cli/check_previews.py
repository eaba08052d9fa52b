"""Previews for pull requests: results that changed checks or a working tree would change."""

import asyncio
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from factbook.cli.check_files import ReadDocument
from factbook.cli.command_parts import (
    USAGE,
    CommandError,
    age_members,
    as_of,
    format_count,
    print_json,
    say,
)
from factbook.client import ApiError, Client
from factbook.client.calls import send_call
from factbook.errors import InputError
from factbook.importers import catalog_files
from factbook.importers.catalog_files import LARGEST_FILE, FileLocation, RootFile
from factbook.importers.code_hosts import CATALOG_FILES
from factbook.outbound.outcomes import Missing, Outcome
from factbook.schemas.results import EntityPreview, EntityPreviewResult, Preview, PreviewedResult

_CHECKS_PREVIEW: Final = "/api/tech-insights/v1/checks/preview"
_MOST_CHANGES: Final = 500
_MOST_CHANGES_SHOWN: Final = 20

# Stands for the repository in file locations; never used as a path.
_HERE: Final = "tree"
_HEAD: Final = "HEAD"
# Limit on catalog files to start reading from.
_MOST_ROOTS: Final = 5_000
_OUTSIDE: Final = Missing(Outcome.NOT_FOUND, "it is not in the tree")

_TREE_PREVIEW: Final = "/api/tech-insights/v1/check-results/preview"
# Limits of the service for one request.
_MOST_SENT: Final = 500
_LARGEST: Final = 4 * 1024 * 1024
_LARGEST_ENVELOPE: Final = 1_024
_MOST_RESULTS_SHOWN: Final = 100
_ITEM: Final = re.compile(r"items\[(\d+)\]\.?(.*)")
_ELSEWHERE: Final = "not known from this tree"
# Characters with a meaning in Markdown and HTML.
_SIGNS: Final = re.compile(r"([\\`*_{}\[\]()#+!|~<>&])")
_ENDS: Final = re.compile(r"[<>|`\s]")
_MOST_PATHS: Final = 50_000
_LONGEST_PATH: Final = 4_096
# Python's surrogates for bytes of a file name that aren't UTF-8.
_HALVES: Final = re.compile(r"[\ud800-\udfff]")
_SO: Final = "so what checks say of the files of this tree is not known"


class FilePreview(NamedTuple):
    """A check in a file, and the changes it would cause."""

    id: str
    preview: Preview

    @property
    def failures(self) -> list[PreviewedResult]:
        """Listed entities that would newly fail."""
        return [one for one in self.preview.entities if one.then == "fail" != one.now]

    def as_json(self) -> dict[str, Any]:
        """The preview in the form of `--json`."""
        return {
            "id": self.id,
            "changed": self.preview.changed,
            "failingNow": self.preview.now.failing,
            "failingThen": self.preview.then.failing,
            **age_members(self.preview),
            "newFailures": [one.entity_ref for one in self.failures],
        }


def preview_checks_of(
    client: Client, read: Sequence[ReadDocument], entities: Sequence[str]
) -> list[FilePreview]:
    """Preview the changes by each check in the files, for all or some entities."""
    about = {"entities": list(entities)} if entities else {}
    checks = [one for one in read if one.kind == "check"]
    return [
        FilePreview(
            one.id,
            client.send(
                send_call(
                    "POST",
                    _CHECKS_PREVIEW,
                    Preview,
                    {"definition": one.document, "limit": _MOST_CHANGES, **about},
                )
            ),
        )
        for one in checks
    ]


def check_preview_lines(found: Sequence[FilePreview]) -> Iterator[str]:
    """The previews as text."""
    for one in found:
        now, then = one.preview.now.failing, one.preview.then.failing
        noun = "result" if one.preview.changed == 1 else "results"
        counts = f"{one.preview.changed:,} {noun} would change; {now:,} fail now, {then:,} would"
        yield f"{one.id}: {counts}{as_of(one.preview)}"
        for result in one.preview.entities[:_MOST_CHANGES_SHOWN]:
            told = f": {result.message}" if result.message else ""
            yield f"  {result.entity_ref}: {result.now} → {result.then}{told}"
        more = one.preview.changed - _MOST_CHANGES_SHOWN
        if more > 0:
            yield f"  and {more:,} more"


def check_preview_markdown(found: Sequence[FilePreview]) -> Iterator[str]:
    """The previews as a comment on a pull request."""
    yield "| Check | Results that change | Fail now | Would fail |"
    yield "| --- | --- | --- | --- |"
    for one in found:
        now, then = one.preview.now.failing, one.preview.then.failing
        yield f"| `{one.id}` | {one.preview.changed:,} | {now:,} | {then:,} |"
    for one in found:
        if not one.preview.entities:
            continue
        yield f"\n**{one.id}**\n"
        for result in one.preview.entities[:_MOST_CHANGES_SHOWN]:
            # A backquote would end the code span and let the reference inject Markdown.
            ref = result.entity_ref.replace("`", "'")
            yield f"- `{ref}`: {result.now} → {result.then}"
        more = one.preview.changed - _MOST_CHANGES_SHOWN
        if more > 0:
            yield f"- and {more:,} more"


class TreeEntity(NamedTuple):
    """Entity in a file, and its place, e.g. `catalog-info.yaml line 12`."""

    entity: dict[str, Any]
    origin: str


class TreeContent(NamedTuple):
    """Entities of a tree, problems reading it, and the paths of all files.

    `paths` is None for a folder inside a repository, as facts cover the whole repository.
    """

    entities: list[TreeEntity]
    problems: list[str]
    paths: list[str] | None


def collect_tree(place: str, named: Sequence[str] = ()) -> TreeContent:
    """Read a tree from its catalog files and the `named` ones; raises InputError."""
    root = Path(place)
    if not root.is_dir():
        raise InputError(f"{place} is not a directory.")
    return asyncio.run(_collect_tree(root, named))


async def _collect_tree(root: Path, named: Sequence[str]) -> TreeContent:
    tracked = await _list_tracked_files(root)
    if tracked is None:
        # Outside a repository: every file below the folder, without following links.
        paths = sorted(
            Path(folder, name).relative_to(root).as_posix()
            for folder, _, names in os.walk(root)
            for name in names
        )
    else:
        paths = sorted(tracked)
    catalog = [path for path in paths if path.rpartition("/")[2].lower() in CATALOG_FILES]
    roots = dict.fromkeys([*(_path_below(root, file) for file in named), *catalog])
    files = _TreeFiles(root, paths, roots)
    if not roots:
        raise InputError(
            f"There is no {' or '.join(CATALOG_FILES)} in {root}. --catalog names others."
        )
    problems: list[str] = []

    def root_files() -> Iterator[RootFile]:
        for path in islice(roots, _MOST_ROOTS):
            content = files.content(path)
            if isinstance(content, Missing):
                problems.append(f"{path} cannot be read: {content.detail}.")
            else:
                yield RootFile(path, FileLocation(_HERE, _HEAD, path), content)

    if len(roots) > _MOST_ROOTS:
        problems.append(f"More than {_MOST_ROOTS:,} catalog files are not read.")
    entities = dict[str, TreeEntity]()
    for reading in (await catalog_files.read_catalog_files(root_files(), files)).values():
        for problem in reading.problems:
            line = f" line {problem.line}" if problem.line else ""
            problems.append(f"{problem.file.removeprefix(f'{_HERE}/')}{line}: {problem.message}")
        for found in reading.entities:
            origin = f"{found.location.path} line {found.document.line}"
            entities.setdefault(origin, TreeEntity(found.entity, origin))
    is_part = tracked is not None and not (root / ".git").exists()
    return TreeContent(
        list(entities.values()), list(dict.fromkeys(problems)), None if is_part else paths
    )


class _TreeFiles:
    """Access to the files of a tree, and no others.

    A pipeline's folder has secrets outside the tree, such as the token in `.git/config`, and a
    catalog file may name any path.
    """

    def __init__(self, root: Path, paths: Sequence[str], roots: Iterable[str]) -> None:
        self._root = Path(os.path.realpath(root))
        self._paths = paths
        self._files = {str(self._root / path) for path in (*paths, *roots)}

    def located(self, url: str, *, is_content: bool = False) -> FileLocation | str:
        """Refuse an address: only files of the tree are read."""
        return f"{url} is an address, and not a file of this tree"

    async def read(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, bytes | Missing]:
        """Read the content of several files."""
        return {one: self.content(one.path) for one in wanted}

    async def paths(
        self, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], Sequence[str] | Missing]:
        """Return the paths of all files for each request."""
        return dict.fromkeys(wanted, self._paths)

    def content(self, path: str) -> bytes | Missing:
        """Read the content of a file; returns the reason if that fails."""
        file = Path(os.path.realpath(self._root / path))
        # A link may lead anywhere on this machine.
        if str(file) not in self._files:
            return _OUTSIDE
        try:
            if not file.is_file():
                return _OUTSIDE
            with file.open("rb") as stream:
                return stream.read(LARGEST_FILE + 1)
        except OSError as error:
            return Missing(Outcome.DENIED, str(error.strerror))


async def _list_tracked_files(root: Path) -> set[str] | None:
    """List the files that git tracks or would add; None outside a repository.

    Tracked files count even if a .gitignore matches them or a sparse checkout omits them. Ignored
    files don't belong to the tree, and may be secrets of the pipeline.
    """
    if not _is_in_repository(root):
        return None
    kept = await _list_with_git(root, "--cached") - await _list_with_git(root, "--deleted")
    return kept | await _list_with_git(root, "--others", "--exclude-standard")


def _is_in_repository(root: Path) -> bool:
    return any((folder / ".git").exists() for folder in (root, *root.resolve().parents))


async def _list_with_git(root: Path, *which: str) -> set[str]:
    path = shutil.which("git")
    if path is None:
        raise InputError(
            f"{root} is in a git repository, but git is not installed to list its files."
        )
    process = await asyncio.create_subprocess_exec(
        *(path, "-c", "core.fsmonitor=false", "ls-files", "-z", *which),
        cwd=root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, error = await process.communicate()
    if process.returncode:
        # Without git, ignored files would count as part of the repository.
        told = " ".join(error.decode("utf-8", "replace").split())
        raise InputError(f"git cannot list the files of {root}: {told}")
    # A name that ends with a slash is a nested repository.
    return {name for name in os.fsdecode(output).split("\0") if name and name[-1] != "/"}


def _path_below(root: Path, file: str) -> str:
    """Path of a file relative to the tree; raises InputError for a file outside."""
    try:
        return Path(os.path.realpath(file)).relative_to(os.path.realpath(root)).as_posix()
    except ValueError:
        raise InputError(f"{file} is not below {root}.") from None


class TreePreview(NamedTuple):
    """The service's answer about a tree, and the problems of omitted entities.

    `answer` is None if no entity could be read.
    """

    answer: EntityPreview | None
    problems: list[str]

    @property
    def failing(self) -> list[str]:
        """Required checks that would newly fail, and whose result depends on the tree."""
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
    """The paths as JSON, or None and the reason not to send them."""

    json: msgspec.Raw | None
    problem: str | None = None


def preview_tree(client: Client, tree: TreeContent, named_set: str | None = None) -> TreePreview:
    """Preview results with the entities of a tree, except those the service refuses.

    The answer may include stored values of entities in `named_set`.
    """
    if len(tree.entities) > _MOST_SENT:
        raise InputError(
            f"The tree has {len(tree.entities)} entities, and {_MOST_SENT} are previewed at once; "
            "--path names a part of it."
        )
    entities, problems = tree.entities, list(tree.problems)
    if tree.paths is None:
        paths = SentPaths(None)
    else:
        items = msgspec.json.encode([one.entity for one in tree.entities])
        paths = _fit_paths(tree.paths, _LARGEST - _LARGEST_ENVELOPE - len(items))
    if paths.problem:
        problems.append(paths.problem)
    while entities:
        try:
            return TreePreview(_request_preview(client, entities, paths.json, named_set), problems)
        except ApiError as error:
            refused = _refused_entities(error, entities)
            if not refused:
                raise
            problems += [line for _, line in refused]
            left_out = {position for position, _ in refused}
            entities = [one for at, one in enumerate(entities) if at not in left_out]
    return TreePreview(None, problems)


def tree_preview_lines(preview: TreePreview) -> Iterator[str]:
    """The preview as text."""
    for one in (shown := _results_to_show(preview))[:_MOST_RESULTS_SHOWN]:
        # On one line, as pipelines interpret some lines as commands.
        told = f": {' '.join(one.message.split())}" if one.message else ""
        link = f" ({one.fix.link})" if one.fix and one.fix.link else ""
        yield f"{_result_in_words(one)} {one.check_id} of {one.entity_ref}{told}{link}"
    if len(shown) > _MOST_RESULTS_SHOWN:
        yield f"and {len(shown) - _MOST_RESULTS_SHOWN:,} more"
    yield _tree_summary(preview)


def tree_preview_markdown(preview: TreePreview) -> Iterator[str]:
    """The preview as a comment on a pull request."""
    yield f"**{_tree_summary(preview)}**"
    shown = _results_to_show(preview)
    if shown:
        yield ""
        yield "| Check | Entity | Result | What it says |"
        yield "| --- | --- | --- | --- |"
    yield from (f"| {' | '.join(_result_cells(one))} |" for one in shown[:_MOST_RESULTS_SHOWN])
    if len(shown) > _MOST_RESULTS_SHOWN:
        yield f"\nAnd {len(shown) - _MOST_RESULTS_SHOWN:,} more."
    if preview.problems:
        yield "\nNot previewed:\n"
        yield from (f"- {_escape_text(one)}" for one in preview.problems[:_MOST_RESULTS_SHOWN])
        if len(preview.problems) > _MOST_RESULTS_SHOWN:
            yield f"- and {len(preview.problems) - _MOST_RESULTS_SHOWN:,} more"


def _result_cells(one: EntityPreviewResult) -> Iterator[str]:
    """Format the cells of a row: check, entity, result and message."""
    yield f"{_escape_text(one.title)} (`{_escape_code(one.check_id)}`)"
    yield f"`{_escape_code(one.entity_ref)}`"
    yield _escape_text(_result_in_words(one))
    link = ""
    if one.fix and one.fix.link:
        address = _ENDS.sub(lambda sign: f"%{ord(sign[0]):02X}", one.fix.link)
        link = f"[How to fix it](<{address}>)"
    yield f"{_escape_text(one.message or '')} {link}".strip()


def _request_preview(
    client: Client,
    entities: Sequence[TreeEntity],
    paths: msgspec.Raw | None,
    named_set: str | None,
) -> EntityPreview:
    items = [one.entity for one in entities]
    body: dict[str, Any] = {"items": items, "paths": paths, "set": named_set}
    given = {name: value for name, value in body.items() if value is not None}
    return client.send(send_call("POST", _TREE_PREVIEW, EntityPreview, given))


def _refused_entities(error: ApiError, entities: Sequence[TreeEntity]) -> list[tuple[int, str]]:
    """Positions of the entities that the service refused, each with a line about it."""
    found = []
    for problem in error.details.get("problems") or [] if error.status == 400 else []:
        match = _ITEM.fullmatch(problem["path"])
        if match and int(match[1]) < len(entities):
            position = int(match[1])
            place = f"{entities[position].origin}{match[2] and ', '}{match[2]}"
            found.append((position, f"{place}: {problem['message']}"))
    return found


def _results_to_show(preview: TreePreview) -> list[EntityPreviewResult]:
    """List the results to show, worst first; omits new entities that pass."""
    results = preview.answer.results if preview.answer else []
    told = [one for one in results if not (one.now is None and _is_good_news(one))]
    return sorted(
        told, key=lambda one: (not one.new_failure, one.then != "fail", _is_good_news(one))
    )


def _is_good_news(one: EntityPreviewResult) -> bool:
    return one.then not in ("fail", "unknown")


def _result_in_words(one: EntityPreviewResult) -> str:
    """Format a change of a result, `pass → fail`, and why it doesn't count."""
    change = f"{one.now or 'new'} → {one.then}"
    if not one.decided and not _is_good_news(one):
        return f"{change}, {_ELSEWHERE}"
    return f"{change}, advisory" if one.then == "fail" and one.severity == "advisory" else change


def _tree_summary(preview: TreePreview) -> str:
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


def _escape_text(text: str) -> str:
    """Escape text for a table cell, removing any other meaning."""
    plain = _SIGNS.sub(r"\\\1", " ".join(text.split()))
    # Prevents mentions and automatic links.
    return plain.replace("@", "`@`").replace("://", "\\://").replace("www.", "www\\.")


def _escape_code(text: str) -> str:
    """Escape text for a code span in a table cell, which backquotes or bars would end."""
    return " ".join(text.split()).replace("`", "'").replace("|", "\\|")


def _fit_paths(paths: Sequence[str], room: int) -> SentPaths:
    """Encode the paths if the service accepts their number, lengths and total bytes."""
    if len(paths) > _MOST_PATHS:
        return SentPaths(
            None, f"The tree has {len(paths):,} files, more than {_MOST_PATHS:,}, {_SO}."
        )
    # Code hosts show undecodable file names this way.
    text = [_HALVES.sub("\ufffd", path) for path in paths]
    if any(len(path) > _LONGEST_PATH for path in text):
        return SentPaths(None, f"A path has more than {_LONGEST_PATH:,} characters, {_SO}.")
    encoded = msgspec.json.encode(text)
    if len(encoded) > room:
        return SentPaths(None, f"The paths of {len(paths):,} files are too long together, {_SO}.")
    return SentPaths(msgspec.Raw(encoded))


class PreviewReport(NamedTuple):
    """Previews of checks, and of a tree if requested."""

    checks: list[FilePreview]
    tree: TreePreview | None

    def show(self, *, markdown: bool, as_json: bool) -> None:
        """Print the previews."""
        if as_json:
            checks = [one.as_json() for one in self.checks]
            print_json(checks if self.tree is None else {"checks": checks, **self.tree.as_json()})
            return
        lines = list[str]()
        if markdown:
            if self.checks:
                lines += check_preview_markdown(self.checks)
            if self.checks and self.tree is not None:
                lines.append("")
            if self.tree is not None:
                lines += tree_preview_markdown(self.tree)
        else:
            lines += check_preview_lines(self.checks)
            if self.tree is not None:
                lines += tree_preview_lines(self.tree)
        for line in lines:
            say(line)

    def refuse(self) -> None:
        """Raise CommandError if anything was omitted or would newly fail."""
        failing = [f"{one.id}" for one in self.checks if one.failures]
        if self.tree is not None:
            failing += [one for one in self.tree.failing if one not in failing]
        told = f"Entities would newly fail: {', '.join(failing)}." if failing else ""
        if self.tree is not None and self.tree.problems:
            problems = format_count(self.tree.problems, "problem")
            message = f"{problems}; the rest was previewed. {told}".strip()
            raise CommandError(message, USAGE, self.tree.problems)
        if failing:
            raise CommandError(told)
