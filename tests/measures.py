"""Measures of the source, and of the files that a request or a run passes.

`python -m tests.measures` prints them. Compare two commits by running it on both.
"""

import ast
import asyncio
import re
import statistics
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import factbook
from factbook.settings import Settings
from factbook.storage.database_url import open_database
from factbook.storage.migrations import migrate
from tests.collection.tools import ToolWorld
from tests.integrations.datadog import asking as datadog
from tests.service import NOON, Service, component, started
from tests.web.visiting import signed_in

SOURCE: Final = Path(factbook.__file__).parent
_CLAUSE = re.compile(r"(What|Who|Whom|Whose|How|Whether|When|Where|Which|Why|That)\b")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Tree:
    """The modules of a folder, parsed."""

    def __init__(self, folder: Path = SOURCE) -> None:
        paths = sorted(folder.rglob("*.py"))
        self.modules = {path.relative_to(folder): ast.parse(path.read_text()) for path in paths}
        self.lengths = [len(path.read_text().splitlines()) for path in paths]
        self.nodes = [node for module in self.modules.values() for node in ast.walk(module)]

    def gerunds(self) -> list[str]:
        """The modules named by a gerund."""
        return [str(path) for path in self.modules if _name(path).endswith("ing")]

    def classes(self) -> Counter[str]:
        """The name of each class, and how often it stands in the tree."""
        return Counter(node.name for node in self.nodes if isinstance(node, ast.ClassDef))

    def docstrings(self) -> list[str]:
        """All docstrings."""
        found = (ast.get_docstring(node) for node in self.nodes if isinstance(node, Documented))
        return [text for text in found if text]

    def functions(self) -> list[Function]:
        """All functions and methods."""
        return [node for node in self.nodes if isinstance(node, Function)]

    def broad(self) -> tuple[int, int]:
        """The number of handlers that catch everything, and of all."""
        handlers = [node for node in self.nodes if isinstance(node, ast.ExceptHandler)]
        names = {"Exception", "BaseException"}
        broad = [one for one in handlers if isinstance(one.type, ast.Name) and one.type.id in names]
        return len(broad), len(handlers)


def _name(path: Path) -> str:
    return path.parent.name if path.stem == "__init__" else path.stem


def source(tree: Tree) -> Iterator[tuple[str, str]]:
    """The measures of the source as rows of a name and a figure."""
    count = len(tree.modules)
    yield "modules / lines", f"{count} / {sum(tree.lengths):,}"
    functions = tree.functions()
    sizes = [1 + (one.end_lineno or one.lineno) - one.lineno for one in functions]
    yield "function median / p90 / max", _spread(sizes)
    yield "module p90 / max", _spread(tree.lengths).partition(" / ")[2]
    public = [one for one in functions if not one.name.startswith("_")]
    told = [one for one in public if ast.get_docstring(one)]
    yield "public functions with a docstring", _share(len(told), len(public))
    yield "broad except", _share(*tree.broad())
    yield "modules named by a gerund", _share(len(tree.gerunds()), count)
    classes = tree.classes()
    twice = [name for name, times in classes.items() if times > 1]
    yield "class names used more than once", _share(len(twice), len(classes))
    texts = tree.docstrings()
    clauses = [text for text in texts if _CLAUSE.match(text)]
    yield "docstrings that open with a clause", _share(len(clauses), len(texts))


def _spread(sizes: list[int]) -> str:
    ordered = sorted(sizes)
    median, ninth = int(statistics.median(ordered)), ordered[len(ordered) * 9 // 10]
    return f"{median} / {ninth} / {ordered[-1]}"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})"


class Trail:
    """The files of the source in which a function was called while it is followed."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._follows = False
        threading.setprofile(self._call)
        sys.setprofile(self._call)

    @contextmanager
    def followed(self) -> Iterator[set[str]]:
        """Follow the calls of all threads that began after this was made."""
        self.files = set()
        self._follows = True
        yield self.files
        self._follows = False

    def _call(self, frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        if self._follows and event == "call" and name.startswith(str(SOURCE)):
            self.files.add(name)


@asynccontextmanager
async def _service() -> AsyncIterator[ToolWorld]:
    """A service on a new database, with an integration; what begins with it is not followed."""
    _, asking = datadog.started()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/factbook.db"
        database = await open_database(url, connections=3)
        await migrate(database, NOON)
        await database.close()
        settings = Settings(database_url=url, token_key="a key of nothing but these measures")
        async with started(settings, sources=[asking.integration.source]) as service:
            yield ToolWorld(service, asking)


async def paths() -> list[tuple[str, str]]:
    """The files passed by a push, a tool call, a run and a page as rows of a name and a count."""
    trail = Trail()
    entity = component("app")
    entity["metadata"]["annotations"] = {"datadoghq.com/service-name": "app"}
    async with _service() as world:
        service: Service = world.service
        for _ in range(2):  # the first time fills caches
            with trail.followed() as push:
                await service.push("all", entity)
        with trail.followed() as run:
            await world.collector.drain()
        await service.ask("get-observability-metrics", name="app")
        with trail.followed() as call:
            await service.ask("get-observability-metrics", name="app")
        browser = await signed_in(service)
        for _ in range(2):
            with trail.followed() as shown:
                await browser.text("/catalog/component/default/app")
        named = {"PUT of a set": push, "tool call": call, "run": run, "entity page": shown}
        return [(f"files passed by a {name}", str(len(files))) for name, files in named.items()]


def main() -> None:
    """Print the table."""
    rows = [*source(Tree()), *asyncio.run(paths())]
    width = max(len(name) for name, _ in rows)
    for name, figure in rows:
        sys.stdout.write(f"{name.ljust(width)}  {figure}\n")


if __name__ == "__main__":
    main()
