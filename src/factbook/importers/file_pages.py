"""Pages at a code host of the files that problems are about."""

from urllib.parse import quote

from factbook.importers import configuration
from factbook.importers.kinds import KINDS
from factbook.importers.snapshot import ReadingProblem


def file_page(importer: str, problem: ReadingProblem) -> str | None:
    """The address of the page of a problem's file; None where that is not known.

    Text of others is only ever a path: the host is that of the importer's options.
    """
    host, _, path = problem.origin.partition("/")
    owner = path.partition("/")[0]
    # A file of another repository begins with its name.
    if not (owner and problem.file) or problem.file.startswith(f"{owner}/"):
        return None
    pattern = _pattern(importer)
    if not pattern:
        return None
    line = f"#L{problem.line}" if problem.line else ""
    return (
        f"https://{quote(host, safe=':')}/{quote(path)}/{pattern.format(quote(problem.file))}{line}"
    )


def _pattern(importer: str) -> str:
    """The path of a file's page for an importer with this id, "" if its kind has none."""
    kind = next((one.id for one in KINDS if f"{importer}-".startswith(f"{one.id}-")), None)
    return "" if kind is None else configuration.kind(kind).file_page
