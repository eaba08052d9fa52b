"""Catalog files: documents, targets and globs, placeholders, and files that mean no good."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from factbook import safe_yaml
from factbook.importers import catalog_files
from factbook.importers.catalog_files import (
    FileLocation,
    OverBudgetError,
    ReadEntity,
    ReadingBudget,
    RepositoryReading,
    RootFile,
    match_patterns,
    parse_documents,
)
from factbook.outbound.outcomes import Missing, Outcome
from tests.steps import steps

ROOT = FileLocation("acme/shop", "HEAD", "catalog-info.yaml")
ORIGIN = "code.test/acme/shop"

NOT_FOUND = Missing(Outcome.NOT_FOUND)


class Files:
    """The files of some repositories, by `repository/path`; `broken` ones cannot be read now."""

    def __init__(self, texts: Mapping[str, str], broken: Iterable[str] = ()) -> None:
        self.texts = texts
        self.broken = set(broken)
        self.read_in: list[int] = []

    def located(self, url: str, *, is_content: bool = False) -> FileLocation | str:
        host, _, rest = url.partition("://")[2].partition("/")
        if host != "code.test":
            return "the target is on another host"
        owner, name, _, ref, path = rest.split("/", 4)
        return FileLocation(f"{owner}/{name}", ref, path)

    async def read(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, bytes | Missing]:
        self.read_in.append(len(wanted))
        return {one: self._read(f"{one.repository}/{one.path}") for one in wanted}

    def _read(self, name: str) -> bytes | Missing:
        if name in self.broken:
            return Missing(Outcome.TRANSIENT, "answered 502")
        return self.texts[name].encode() if name in self.texts else NOT_FOUND

    async def paths(
        self, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], Sequence[str] | Missing]:
        return {
            (repository, ref): [
                name.removeprefix(f"{repository}/")
                for name in self.texts
                if name.startswith(f"{repository}/")
            ]
            for repository, ref in wanted
        }


def component(name: str, more: str = "") -> str:
    return f"apiVersion: v1\nkind: Component\nmetadata:\n  name: {name}\n{more}"


def location(*targets: str, more: str = "") -> str:
    listed = "".join(f"\n    - {target}" for target in targets)
    return (
        "apiVersion: v1\nkind: Location\nmetadata:\n  name: all\n"
        f"spec:\n  type: url\n{more}  targets:{listed}\n"
    )


async def read(root: str, files: Files | None = None, **texts: str) -> RepositoryReading:
    given = files or Files({f"acme/shop/{path}": text for path, text in texts.items()})
    found = await catalog_files.read_catalog_files([RootFile(ORIGIN, ROOT, root.encode())], given)
    return found[ORIGIN]


def files(texts: Mapping[str, str], broken: Iterable[str] = ()) -> Files:
    return Files({f"acme/shop/{path}": text for path, text in texts.items()}, broken)


def names(reading: RepositoryReading) -> list[Any]:
    return [one.entity["metadata"]["name"] for one in reading.entities]


def told(reading: RepositoryReading) -> list[str]:
    return [f"{p.file}:{p.line} {p.message}" for p in reading.problems]


async def test_every_document_of_a_file_is_an_entity_with_its_line() -> None:
    reading = await read(f"{component('a')}---\n---\n{component('b')}")
    assert [
        (one.document.line, one.document.lines["metadata.name"]) for one in reading.entities
    ] == [
        (1, 4),
        (7, 10),
    ]
    assert (names(reading), reading.problems, reading.whole) == (["a", "b"], [], True)


async def test_one_wrong_document_leaves_the_others() -> None:
    reading = await read(f"{component('a')}---\n- 1\n---\n{component('b')}")
    assert names(reading) == ["a", "b"]
    assert told(reading) == ["catalog-info.yaml:6 is not an entity: a mapping is expected"]
    assert not reading.whole


async def test_a_file_that_cannot_be_read_is_a_problem_with_its_line(
    subtests: pytest.Subtests,
) -> None:
    cases = {
        "syntax": ("a: [", ":2 is not valid YAML"),
        "twice": ("a: 1\na: 2\n", ":2 is not valid YAML"),
        "itself": ("a: &a [*a]\n", ":1 contains itself"),
        "tag": ("a: !!python/object:os.system {}\n", ":1 is not valid YAML"),
        "nul": ("\x00", ":0 is not valid YAML"),
        "depth": ("- " * 200 + "a", ":0 is nested more than 100 deep"),
        "size": ("a: " + "x" * (1024 * 1024), ":0 is larger than 1,048,576 bytes"),
        "aliases": (
            "a: &a [1,1,1,1,1,1,1,1,1]\n"
            + "".join(
                f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"
                for a, b in zip("abcdefgh", "bcdefghi", strict=True)
            ),
            ":1 has more than 200,000 parts",
        ),
        "merges": (
            "a: &a {k: 1}\n"
            + "".join(
                f"{b}: &{b} {{<<: [{','.join([f'*{a}'] * 9)}]}}\n"
                for a, b in zip("abcdefgh", "bcdefghi", strict=True)
            ),
            ":1 has more than 200,000 parts",
        ),
    }
    for case, (text, problem) in cases.items():
        with subtests.test(case):
            reading = await read(text)
            assert told(reading)[0].startswith(f"catalog-info.yaml{problem}")
            assert (reading.entities, reading.whole) == ([], False)


async def test_an_alias_stands_for_its_value() -> None:
    reading = await read(component("a", "spec: {x: &x {y: 1}, z: *x}\n"))
    assert reading.entities[0].entity["spec"] == {"x": {"y": 1}, "z": {"y": 1}}


async def test_targets_are_read_relative_absolute_and_by_pattern() -> None:
    texts = {
        "services/a.yaml": component("a"),
        "services/deep/er/b.yaml": component("b"),
        "services/c.txt": "no catalog file",
        "docs/d.yaml": component("d"),
    }
    root = location(
        "./services/a.yaml",
        "services/**/*.yaml",
        "/docs/d.yaml",
        "https://code.test/acme/shop/blob/main/docs/d.yaml",
    )
    reading = await read(root, files(texts))
    assert sorted(names(reading)) == ["a", "all", "b", "d", "d"]
    assert (reading.problems, reading.whole) == ([], True)


async def test_a_pattern_names_files(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, list[str]]] = [
        ("*.yaml", ["a.yaml"]),
        ("**/a.yaml", ["a.yaml", "x/a.yaml", "x/y/a.yaml"]),
        ("x/*/a.yaml", ["x/y/a.yaml"]),
        ("x/**", ["x/a.yaml", "x/y/a.yaml"]),
        ("x/*", ["x/a.yaml"]),
        ("x?.yaml", []),
    ]
    for pattern, matched in cases:
        with subtests.test(pattern=pattern, matched=matched):
            texts = {
                path: component(path.replace("/", "-"))
                for path in ("a.yaml", "x/a.yaml", "x/y/a.yaml")
            }
            reading = await read(location(f"'{pattern}'"), files(texts))
            expected = [path.replace("/", "-") for path in matched]
            assert sorted(names(reading)) == sorted([*expected, "all"])


async def test_files_of_a_level_are_read_together() -> None:
    texts = {f"{n}.yaml": location(f"{n}/x.yaml") for n in range(30)}
    texts |= {f"{n}/x.yaml": component(f"c{n}") for n in range(30)}
    given = files(texts)
    await read(location(*(f"{n}.yaml" for n in range(30))), given)
    assert given.read_in == [30, 30]


async def test_a_cycle_ends_as_a_problem_and_loses_nothing() -> None:
    texts = {
        "a.yaml": f"{component('a')}---\n{location('catalog-info.yaml', 'b.yaml', 'a.yaml')}",
        "b.yaml": component("b"),
    }
    reading = await read(location("a.yaml"), files(texts))
    assert names(reading) == ["all", "a", "all", "b"]
    assert [text.partition(" ")[2] for text in told(reading)] == [
        "the target leads back to a file that leads here"
    ] * 2
    assert reading.whole


async def test_locations_are_followed_ten_levels_deep() -> None:
    texts = {f"{n}.yaml": location(f"{n + 1}.yaml") for n in range(20)}
    reading = await read(location("0.yaml"), files(texts))
    assert len(reading.entities) == 11
    assert told(reading) == ["9.yaml:7 locations are followed 10 levels deep"]
    assert not reading.whole


@pytest.mark.slow
async def test_a_thousand_files_are_read_at_most() -> None:
    texts = {f"x/{n}.yaml": component(f"c{n}") for n in range(1_100)}
    reading = await read(location("x/*.yaml"), files(texts))
    assert len(reading.entities) == 1_000
    assert told(reading) == ["catalog-info.yaml:7 more than 1,000 files are not read"]


async def test_a_target_that_is_not_read_is_a_problem(subtests: pytest.Subtests) -> None:
    cases = [
        ("../secrets.yaml", "the target is outside the repository"),
        ("x/../../secrets.yaml", "the target is outside the repository"),
        ("'%2e%2e/secrets.yaml'", "the target is outside the repository"),
        ("https://evil.test/acme/shop/blob/main/a.yaml", "the target is on another host"),
        ("//evil.test/a.yaml", "the target is not a path or URL"),
        ("..\\secrets.yaml", "the target is not a path or URL"),
        ("'file:///etc/passwd'", "the target is on another host"),
        ("missing.yaml", "missing.yaml: there is no such file"),
    ]
    for target, problem in cases:
        with subtests.test(target=target):
            reading = await read(location(target))
            assert told(reading) == [f"catalog-info.yaml:7 {problem}"]
            assert (names(reading), reading.whole) == (["all"], False)


async def test_a_location_of_another_type_is_a_problem() -> None:
    reading = await read(location("a.yaml").replace("type: url", "type: file"))
    assert told(reading) == ["catalog-info.yaml:7 a location of a type other than url is not read"]


async def test_an_optional_target_may_be_missing_but_not_unreadable() -> None:
    root = location("a.yaml", "b.yaml", more="  presence: optional\n")
    reading = await read(root, files({}, broken=["acme/shop/b.yaml"]))
    assert told(reading) == ["catalog-info.yaml:8 b.yaml: upstream-error: answered 502"]


async def test_placeholders_are_replaced_by_files_relative_to_their_own() -> None:
    text = component(
        "a",
        "spec:\n  definition: {$text: ./api.txt}\n  j: [{$json: x/j.json}]\n  y: {$yaml: y.yaml}\n"
        "  other: {$unknown: z}\n  two: {$text: a, b: {$text: c}}\n  open: {$openapi: api.txt}\n",
    )
    texts = {"api.txt": "{$text: no}", "x/j.json": '{"a": [1]}', "y.yaml": "b: {$text: no}"}
    reading = await read(text, files(texts))
    assert reading.entities[0].entity["spec"] == {
        "definition": "{$text: no}",
        "j": [{"a": [1]}],
        "y": {"b": {"$text": "no"}},
        "other": {"$unknown": "z"},
        "two": {"$text": "a", "b": {"$text": "c"}},
        "open": "{$text: no}",
    }
    assert reading.whole


async def test_a_placeholder_that_cannot_be_replaced_is_left_out_with_the_problem(
    subtests: pytest.Subtests,
) -> None:
    cases = [
        ("{$text: missing.txt}", "missing.txt: there is no such file"),
        ("{$text: ../up.txt}", "../up.txt: the target is outside the repository"),
        ("{$text: [a]}", "$text has to name a file"),
        ("{$json: bad.txt}", "bad.txt cannot be read as json: "),
        ("{$yaml: two.txt}", "two.txt cannot be read as yaml: does not hold exactly one document"),
    ]
    for placeholder, problem in cases:
        with subtests.test(placeholder=placeholder):
            text = f"{component('a', f'spec: {{x: {placeholder}}}')}\n---\n{component('b')}"
            reading = await read(text, files({"bad.txt": "{", "two.txt": "a: 1\n---\nb: 2\n"}))
            assert [(*one.entity, *one.entity.get("spec", "-")) for one in reading.entities] == [
                ("apiVersion", "kind", "metadata", "spec"),
                ("apiVersion", "kind", "metadata", "-"),
            ]
            assert told(reading)[0].startswith(f"catalog-info.yaml:1 {problem}")
            assert reading.whole
            assert not any(one.tentative for one in reading.entities)


async def test_an_entity_stays_as_it_was_while_a_file_of_its_content_cannot_be_read() -> None:
    text = component("a", "spec: {x: [{$text: a.txt}, {$text: b.txt}]}")
    reading = await read(text, files({"a.txt": "A"}, broken=["acme/shop/b.txt"]))
    [one] = reading.entities
    assert (one.entity["spec"], one.tentative, reading.whole) == ({"x": ["A"]}, True, True)
    assert told(reading) == ["catalog-info.yaml:1 b.txt: upstream-error: answered 502"]


async def test_a_byte_order_mark_is_no_content_of_a_field() -> None:
    text = component("a", "spec: {text: {$text: a.json}, json: {$json: a.json}}")
    reading = await read(text, files({"a.json": "\ufeff{}"}))
    assert reading.entities[0].entity["spec"] == {"text": "{}", "json": {}}


async def test_a_catalog_file_of_powershell_is_read() -> None:
    content = f"{component('a')}---\n{component('b')}".encode("utf-16")
    found = await catalog_files.read_catalog_files([RootFile(ORIGIN, ROOT, content)], files({}))
    assert names(found[ORIGIN]) == ["a", "b"]
    content = component("{{cookiecutter.name}}").encode("utf-16")
    found = await catalog_files.read_catalog_files([RootFile(ORIGIN, ROOT, content)], files({}))
    assert "is a template and left out" in told(found[ORIGIN])[0]


async def test_a_document_that_is_a_placeholder_itself_may_be_any_entity() -> None:
    reading = await read("$yaml: a.yaml\n")
    assert (names(reading), reading.whole) == ([], False)
    assert told(reading) == ["catalog-info.yaml:1 a.yaml: there is no such file"]


async def test_a_template_of_a_catalog_file_is_no_entity_and_leaves_the_others(
    subtests: pytest.Subtests,
) -> None:
    cases = [
        ("metadata: {name: '${{ values.name }}'}", ":5 {}: metadata.name has ${{ values.name }}"),
        ("metadata:\n  name: {{cookiecutter.name}}", ":6 {}: it has {{cookiecutter.name}}"),
        ("metadata:\n  name: {{ cookiecutter.name }}-x", ":6 {}: it has {{ cookiecutter.name }}"),
        ("metadata: {name: '{{ name }}'}", ":5 {}: metadata.name has {{ name }}"),
        ("metadata: {name: '<%= name %>'}", ":5 {}: metadata.name has <%= name %>"),
        ("metadata: {name: '${NAME}'}", ":5 {}: metadata.name has ${NAME}"),
        ("metadata: {name: x, namespace: '${ENV}'}", ":5 {}: metadata.namespace has ${ENV}"),
        ("{% if a %}\nmetadata: {name: x}\n{% endif %}", ":5 {}: it has {% if a %}"),
        (
            "metadata: {name: x}\nspec:\n  owner: ${{ values.owner }}",
            ":7 {}: spec.owner has ${{ values.owner }}",
        ),
    ]
    for text, problem in cases:
        with subtests.test(text=text):
            skeleton = f"---\n# all of it\napiVersion: v1\nkind: Component\n{text}\n"
            reading = await read(
                location("./**/info.yaml"),
                files({"a/info.yaml": skeleton, "b/info.yaml": component("b")}),
            )
            assert (names(reading), reading.whole) == (["all", "b"], True)
            assert told(reading) == [
                f"a/info.yaml{problem.replace('{}', 'is a template and left out', 1)}"
            ]
    template = component("t", "spec: {x: '${{ y }}'}").replace("Component", "Template")
    assert (await read(template)).problems == []


MIB = 1024 * 1024


async def test_a_file_is_read_once_and_counts_as_often_as_placeholders_use_it() -> None:
    big = files({"big": "x" * MIB})
    few = "".join(f"  a{n}: {{$text: ./big}}\n" for n in range(10))
    reading = await read(component("few", f"spec:\n{few}"), big)
    assert (names(reading), reading.problems, big.read_in) == (["few"], [], [1])
    texts = {id(text) for text in reading.entities[0].entity["spec"].values()}
    assert len(texts) == 1, "one text in all places"


@pytest.mark.slow
async def test_files_that_multiply_are_cut_off_by_the_budget_of_their_origin(
    subtests: pytest.Subtests,
) -> None:
    many = range(3_000)
    uses = "".join(f"  a{n}: {{$text: ./big}}\n" for n in many)
    aliases = "".join(f"  a{n}: *big\n" for n in many)
    others = "".join(f"\n---\n{component(f'c{n}', 'spec: {$json: ./parts}')}" for n in range(40))
    cases = {
        "text in many places": (component("a", f"spec:\n{uses}"), "33,554,432 bytes"),
        "aliases of a placeholder": (
            component("a", f"x: &big {{$text: ./big}}\nspec:\n{aliases}"),
            "33,554,432 bytes",
        ),
        "values in many entities": (f"{component('a')}{others}", "500,000 values"),
        "many documents": ("--- {}\n" * 60_000, "500,000 values"),
        "many targets": (location(*(f"t{n}" for n in range(2_500))), "more than 2,000 targets"),
    }
    texts = {"big": "x" * MIB, "parts": f"[{'1,' * 20_000}1]"}
    for case, (text, problem) in cases.items():
        with subtests.test(case):
            reading = await read(text, files(texts))
            assert problem in reading.cut_off
            assert [one.message for one in reading.problems if problem in one.message]
            assert not reading.whole
            assert sum(map(weight, reading.entities)) < 34 * MIB


def weight(one: ReadEntity) -> int:
    """The bytes of an entity as JSON."""
    return len(msgspec.json.encode(one.entity))


async def test_a_pattern_in_many_places_names_its_files_once() -> None:
    texts = {f"{'d/' * 30}{n}/aaaaaaaaaaaaaaaa.yaml": component(f"c{n}") for n in range(300)}
    same = await read(location(*["'**/a*.yaml'"] * 1_900), given := files(texts))
    assert (len(same.entities), same.problems, given.read_in) == (301, [], [100, 100, 100])


@pytest.mark.slow
def test_patterns_are_cut_off_by_their_steps() -> None:
    paths = [f"{'d/' * 30}{n}/aaaaaaaaaaaaaaaa.yaml" for n in range(300)]
    patterns = [f"**/{'d/*/' * 12}{'*a' * n}*.yaml" for n in range(1, 200)]
    budget = ReadingBudget(steps=100_000)
    lines = steps(catalog_files, lambda: told_of(patterns, paths, budget))
    assert budget.steps < 0
    assert lines < 2_000_000


def told_of(patterns: list[str], paths: list[str], budget: ReadingBudget) -> None:
    with pytest.raises(OverBudgetError, match="the patterns take more than"):
        match_patterns(patterns, paths, budget)


@pytest.mark.slow
def test_a_document_takes_steps_in_proportion_to_its_length(subtests: pytest.Subtests) -> None:
    cases: dict[str, Callable[[int], str]] = {
        "aliases of a long list": lambda n: (
            f"a: &a [{'1,' * n}1]\nb: [{'*a,' * (n // 20)}*a]\nc: [{'*a,' * n}*a]\n"
        ),
        "a long name of many fields": lambda n: (
            f"? {'k' * 50 * n}\n: {{{','.join(f'a{i}: 1' for i in range(n))}}}\n"
        ),
    }
    for case, made in cases.items():
        with subtests.test(case):
            small, large = (counted(made(n).encode()) for n in (100, 1_000))
            assert large < 15 * small


def counted(data: bytes) -> int:
    return sum(
        steps(module, lambda: parse_documents(data, ReadingBudget()))
        for module in (catalog_files, safe_yaml)
    )


def test_a_file_of_many_documents_is_cut_off() -> None:
    with pytest.raises(OverBudgetError, match="500,000 values"):
        parse_documents(b"--- {}\n" * 100, ReadingBudget(parts=900))


def test_lines_are_kept_of_short_names_alone() -> None:
    text = f"? {'k' * 100_000}\n: {{{','.join(f'a{i}: 1' for i in range(1_000))}}}\n"
    [document] = parse_documents(text.encode(), ReadingBudget()).documents
    assert sum(map(len, document.lines)) < 1_000


def test_keys_that_share_a_hash_are_refused() -> None:
    keys = ",".join(f"{(2**61 - 1) * n}: 1" for n in range(1, 100))
    [problem] = parse_documents(f"{{{keys}}}".encode(), ReadingBudget()).problems
    assert problem.message == (
        "is not valid YAML: a key is a number of more than 18 characters; put it in quotes"
    )


@pytest.mark.slow
async def test_all_origins_together_have_a_budget() -> None:
    text = component("a", "spec:\n" + "".join(f"  a{n}: {{$text: ./big}}\n" for n in range(25)))
    roots = [
        RootFile(f"code.test/acme/{name}", FileLocation(f"acme/{name}", "HEAD", "c.yaml"), data)
        for name, data in [*((f"r{n}", text.encode()) for n in range(8)), ("z", b"kind: A\n")]
    ]
    big = {f"acme/r{n}/big": "x" * MIB for n in range(8)}
    found = await catalog_files.read_catalog_files(roots, Files(big))
    assert [len(one.entities) for one in found.values()] == [1, 1, 1, 1, 0, 0, 0, 0, 1]
    told = found["code.test/acme/r7"]
    assert "of all repositories are too large together" in told.problems[0].message
    assert (told.cut_off, told.whole) == ("", False), "which another reading may not meet"
