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
from itertools import pairwise
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
_TOOL = "get-entity-compliance"
_BY_NAME = "/api/catalog/entities/by-name/component/default/app"
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Tree:
    """The modules of a folder, parsed."""

    def __init__(self, folder: Path = SOURCE) -> None:
        self.folder = folder
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

    def public_functions(self) -> list[Function]:
        """The functions and methods that others can call: not private, nor within another one."""
        within = {
            inner
            for outer in self.functions()
            for inner in ast.walk(outer)
            if isinstance(inner, Function) and inner is not outer
        }
        return [
            function
            for function in self.functions()
            if not function.name.startswith("_") and function not in within
        ]

    def same_names(self) -> tuple[int, int]:
        """The number of module-level functions that share their name, and of all."""
        names = Counter(
            node.name
            for module in self.modules.values()
            for node in module.body
            if isinstance(node, Function)
        )
        return sum(times for times in names.values() if times > 1), names.total()

    def small_helpers(self) -> list[str]:
        """Private functions and methods of at most six lines, used once in their module."""
        helpers = []
        for module in self.modules.values():
            nodes = list(ast.walk(module))
            uses = Counter(node.id for node in nodes if isinstance(node, ast.Name))
            uses.update(node.attr for node in nodes if isinstance(node, ast.Attribute))
            helpers += [
                node.name
                for node in nodes
                if isinstance(node, Function)
                and node.name.startswith("_")
                and not node.name.startswith("__")
                and _lines(node) <= 6
                and uses[node.name] == 1
            ]
        return helpers

    def importers(self) -> dict[str, set[str]]:
        """The modules of the tree that import each module."""
        modules = {_dotted(self.folder, path): module for path, module in self.modules.items()}
        importers: dict[str, set[str]] = {name: set() for name in modules}
        for name, module in modules.items():
            for node in ast.walk(module):
                if isinstance(node, ast.ImportFrom) and node.module:
                    names = (f"{node.module}.{alias.name}" for alias in node.names)
                    imported = {each if each in modules else node.module for each in names}
                elif isinstance(node, ast.Import):
                    imported = {alias.name for alias in node.names}
                else:
                    continue
                for each in imported & modules.keys():
                    importers[each].add(name)
        return importers

    def broad(self) -> tuple[int, int]:
        """The number of handlers that catch everything, and of all."""
        handlers = [node for node in self.nodes if isinstance(node, ast.ExceptHandler)]
        names = {"Exception", "BaseException"}
        broad = [one for one in handlers if isinstance(one.type, ast.Name) and one.type.id in names]
        return len(broad), len(handlers)


def _lines(function: Function) -> int:
    return 1 + (function.end_lineno or function.lineno) - function.lineno


def _dotted(folder: Path, path: Path) -> str:
    parts = (folder.name, *path.with_suffix("").parts)
    return ".".join(parts[:-1] if path.stem == "__init__" else parts)


def _name(path: Path) -> str:
    return path.parent.name if path.stem == "__init__" else path.stem


def source(tree: Tree) -> Iterator[tuple[str, str]]:
    """The measures of the source as rows of a name and a figure."""
    count = len(tree.modules)
    yield "modules / lines", f"{count} / {sum(tree.lengths):,}"
    functions = tree.functions()
    sizes = [_lines(function) for function in functions]
    yield "function median / p90 / max", _spread(sizes)
    yield "module p90 / max", _spread(tree.lengths).partition(" / ")[2]
    public = tree.public_functions()
    told = [one for one in public if ast.get_docstring(one)]
    yield "public functions with a docstring", _share(len(told), len(public))
    yield "broad except", _share(*tree.broad())
    yield "modules named by a gerund", _share(len(tree.gerunds()), count)
    single = [name for name, modules in tree.importers().items() if len(modules) == 1]
    yield "modules imported by exactly one other (goal 60)", _share(len(single), count)
    yield "functions that share their name (goal 25%)", _share(*tree.same_names())
    small = tree.small_helpers()
    yield "private functions of 6 lines or less, used once (goal 200)", str(len(small))
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
    """The calls of functions of the source while it is followed, in order, by their files."""

    def __init__(self) -> None:
        self._calls: list[str] = []
        self._follows = False
        threading.setprofile(self._call)
        sys.setprofile(self._call)

    @contextmanager
    def followed(self) -> Iterator[list[str]]:
        """Follow the calls of all threads that began after this was made."""
        self._calls = []
        self._follows = True
        yield self._calls
        self._follows = False

    def _call(self, frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        if self._follows and event == "call" and name.startswith(str(SOURCE)):
            self._calls.append(name)


def _moves(calls: list[str]) -> int:
    """The number of calls in another file than the call before."""
    return sum(here != there for here, there in pairwise(calls))


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
    """The files passed by requests, a run and a page, as rows of a name and a count."""
    trail = Trail()
    app = component("app")
    app["metadata"]["annotations"] = {"datadoghq.com/service-name": "app"}
    async with _service() as world:
        service: Service = world.service
        await service.push("all", app, _group("warm"))
        web = component("web")
        web["spec"] |= {"owner": "group:default/team", "system": "shop"}
        with trail.followed() as push:
            await service.push("two", web, _group("team"))
        with trail.followed() as run:
            await world.collector.drain()
        with trail.followed() as call:
            await service.ask(_TOOL, name="app")
        with trail.followed() as by_name:
            await service.http.get(_BY_NAME)
        browser = await signed_in(service)
        await browser.text("/catalog/component/default/app")
        with trail.followed() as page:
            await browser.text("/catalog/component/default/app")
    return [
        ("files passed by a PUT of two entities (goal 22)", str(len(set(push)))),
        ("moves between files in it (goal 130)", str(_moves(push))),
        ("files passed by a tool call (goal 16)", str(len(set(call)))),
        ("files passed by a GET by-name (goal 9)", str(len(set(by_name)))),
        ("files passed by a run", str(len(set(run)))),
        ("files passed by an entity page", str(len(set(page)))),
    ]


def _group(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Group",
        "metadata": {"name": name},
        "spec": {"type": "team", "children": []},
    }


def main() -> None:
    """Print the table."""
    rows = [*source(Tree()), *asyncio.run(paths())]
    width = max(len(name) for name, _ in rows)
    for name, figure in rows:
        sys.stdout.write(f"{name.ljust(width)}  {figure}\n")


if __name__ == "__main__":
    main()
