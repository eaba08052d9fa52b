"""Report of previews: of checks in files, of a working tree, or of both."""

from collections.abc import Iterator
from typing import NamedTuple

from factbook.cli.checks import previews, tree_preview
from factbook.cli.checks.previews import FilePreview
from factbook.cli.checks.tree_preview import TreePreview
from factbook.cli.connection import count
from factbook.cli.failures import USAGE, CommandError
from factbook.cli.output import print_json, say


class PreviewReport(NamedTuple):
    """Previews of checks, and that of a tree if one was asked for."""

    checks: list[FilePreview]
    tree: TreePreview | None

    def show(self, *, markdown: bool, as_json: bool) -> None:
        """Print the previews."""
        if as_json:
            checks = [one.as_json() for one in self.checks]
            print_json(checks if self.tree is None else {"checks": checks, **self.tree.as_json()})
            return
        for line in self._markdown() if markdown else self._lines():
            say(line)

    def refuse(self) -> None:
        """Raise CommandError if something was left out, or would newly fail."""
        failing = [f"{one.id}" for one in self.checks if one.failures]
        if self.tree is not None:
            failing += [one for one in self.tree.failing if one not in failing]
        told = f"Entities would newly fail: {', '.join(failing)}." if failing else ""
        if self.tree is not None and self.tree.problems:
            problems = count(self.tree.problems, "problem")
            message = f"{problems}; the rest was previewed. {told}".strip()
            raise CommandError(message, USAGE, self.tree.problems)
        if failing:
            raise CommandError(told)

    def _lines(self) -> Iterator[str]:
        yield from previews.lines(self.checks)
        if self.tree is not None:
            yield from tree_preview.lines(self.tree)

    def _markdown(self) -> Iterator[str]:
        if self.checks:
            yield from previews.markdown(self.checks)
        if self.tree is not None:
            yield from ("",) if self.checks else ()
            yield from tree_preview.markdown(self.tree)
