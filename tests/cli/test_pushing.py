"""`factbook push` and `factbook sets`."""

import json
from pathlib import Path

import pytest
import yaml

from factbook.clock import DAY, HOUR, iso, now
from tests.cli.bridge import Run
from tests.cli.conftest import Command
from tests.cli.fake_server import FakeServer, component, pushed, rehearsed
from tests.service import Service

SETS = "/api/catalog/factbook-entities/sets"
SERVICES = f"{SETS}/services"
REPORTS = Path(__file__).parents[1] / "data" / "reports"


@pytest.fixture
def catalog(factbook: Command) -> str:
    """A file with the components a, b and c, in the directory that the command runs in."""
    Path("catalog.yaml").write_text(yaml.safe_dump_all(component(name) for name in "abc"))
    return "catalog.yaml"


def test_a_push_sends_the_entities_of_all_files_in_order(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    Path("more.json").write_text(json.dumps({"items": [component("d")]}))
    server.on("PUT", SERVICES, pushed("a", "b", "c", "d"))
    answer = factbook("push", "services", catalog, "more.json")
    assert answer.exit_code == 0
    assert answer.stdout == ("services: 4 added, 0 updated, 0 removed, 0 unchanged; revision 1\n")
    assert answer.stderr == ""
    assert server.sent() == {"items": [component(name) for name in "abcd"]}


def test_a_push_reads_standard_input(factbook: Command, server: FakeServer) -> None:
    server.on("PUT", SERVICES, pushed("a"))
    answer = factbook("push", "services", "-", input=json.dumps(component("a")))
    assert answer.exit_code == 0
    assert server.sent() == {"items": [component("a")]}


def test_a_push_sends_what_yaml_1_2_says(factbook: Command, server: FakeServer) -> None:
    server.on("PUT", SERVICES, pushed("a"))
    spec = (
        "{on: off, mode: 0755, at: 12:30:45, since: 2026-02-03 04:05:06, country: no, big: 1_000}"
    )
    text = f"apiVersion: v1\nkind: Component\nmetadata: {{name: a}}\nspec: {spec}\n"
    assert factbook("push", "services", "-", input=text).exit_code == 0
    assert server.sent()["items"][0]["spec"] == {
        "on": "off",
        "mode": 755,
        "at": "12:30:45",
        "since": "2026-02-03 04:05:06",
        "country": "no",
        "big": "1_000",
    }


def test_options_and_environment_reach_the_server(
    factbook: Command, server: FakeServer, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("PUT", "/api/catalog/acme-entities/sets/services", pushed("a"))
    monkeypatch.setenv("FACTBOOK_TOKEN", "fbk_secret")
    monkeypatch.setenv("FACTBOOK_SERVER", "https://factbook.test")
    monkeypatch.setenv("FACTBOOK_PUSH_WORD", "acme")
    arguments = ["services", catalog, "--on-conflict", "take", "--max-removals", "10%"]
    assert factbook("push", *arguments).exit_code == 0
    assert server.last.url.host == "factbook.test"
    assert server.last.headers["authorization"] == "Bearer fbk_secret"
    assert dict(server.last.url.params) == {"onConflict": "take", "maxRemovals": "10%"}


def test_an_empty_guard_is_never_left_out(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    server.refuse("PUT", SERVICES, 400, "maxRemovals is empty.")
    assert factbook("push", "services", catalog, "--max-removals", "").exit_code == 1
    assert dict(server.last.url.params) == {"maxRemovals": ""}
    assert factbook("push", "services", catalog, "--on-conflict", "").exit_code == 2
    assert len(server.requests) == 1


def test_a_dry_run_prints_the_difference_as_a_table(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    long = "component:default/" + "x" * 200
    difference = [
        {"entityRef": "component:default/a", "change": "added"},
        {"entityRef": long, "change": "removed"},
    ]
    changes = {"added": 1, "updated": 0, "removed": 1, "unchanged": 2}
    server.on("PUT", SERVICES, rehearsed(difference=difference, changes=changes))
    answer = factbook("push", "services", catalog, "--dry-run")
    assert server.last.url.params["dryRun"] == "true"
    assert [line.split() for line in answer.stdout.splitlines()[:-1]] == [
        ["Change", "Entity"],
        ["added", "component:default/a"],
        ["removed", long],
    ]
    assert answer.stdout.splitlines()[-1] == (
        "services: 1 added, 0 updated, 1 removed, 2 unchanged (dry run: nothing was written)"
    )


def test_a_dry_run_without_a_difference_prints_the_summary_alone(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    server.on("PUT", SERVICES, rehearsed())
    answer = factbook("push", "services", catalog, "--dry-run")
    assert len(answer.stdout.splitlines()) == 1


def test_json_is_the_servers_answer(factbook: Command, server: FakeServer, catalog: str) -> None:
    server.on("PUT", SERVICES, pushed("a"))
    answer = json.loads(factbook("push", "services", catalog, "--json").stdout)
    assert answer["changes"] == {"added": 1, "updated": 0, "removed": 0, "unchanged": 0}
    assert (answer["revision"], answer["warnings"]) == (1, [])
    assert (answer["items"][0]["entityRef"], answer["items"][0]["id"]) == (
        "component:default/a",
        "id-of-a",
    )


def test_json_of_a_dry_run_has_the_difference(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    server.on("PUT", SERVICES, rehearsed())
    answer = json.loads(factbook("push", "services", catalog, "--dry-run", "--json").stdout)
    assert (answer["dryRun"], answer["difference"]) == (True, [])


def test_warnings_name_the_document_that_they_are_about(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    warnings = [
        {"path": "items[2].spec", "entityRef": "component:default/c", "message": "lacks owner"}
    ]
    server.on("PUT", SERVICES, pushed("a", "b", "c", warnings=warnings))
    answer = factbook("push", "services", catalog)
    assert answer.exit_code == 0
    assert (
        "catalog.yaml document 3 (line 17), component:default/c, spec: lacks owner" in answer.stderr
    )
    assert answer.stdout.endswith("; warnings: 1\n")


def test_every_problem_is_listed_with_its_document(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    problems = [
        {"path": "items[0].metadata.name", "message": "has a slash"},
        {"path": "items[2]", "message": "is there twice"},
        {"path": "items[99].kind", "message": "is odd"},
        {"path": "items", "message": "are odd"},
    ]
    server.refuse("PUT", SERVICES, 400, "4 problems: …", problems=problems)
    answer = factbook("push", "services", catalog)
    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert answer.stderr.splitlines() == [
        "Error: 4 problems, nothing was written:",
        "  catalog.yaml document 1 (line 1), component:default/a, metadata.name: has a slash",
        "  catalog.yaml document 3 (line 17), component:default/c: is there twice",
        "  items[99].kind: is odd",
        "  items: are odd",
    ]


def test_every_file_that_cannot_be_read_is_named(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    Path("bad.yaml").write_text("kind: [\n")
    Path("twice.yaml").write_text("a: 1\na: 2\n---\nkind: A\n---\n- 1\n---\na: !Ref x\n")
    Path("bad.json").write_text('{"items": [1, {}, "two"]}')
    answer = factbook("push", "services", "bad.yaml", catalog, "twice.yaml", "no.yaml", "bad.json")
    assert answer.exit_code == 2
    lines = answer.stderr.splitlines()
    assert lines[0] == "Error: 7 problems, nothing was written:"
    assert [line.split(" is not")[0].split(" cannot")[0] for line in lines[1:]] == [
        "  bad.yaml",
        "  twice.yaml",
        "  twice.yaml document 3 (line 6), item 1",
        "  twice.yaml",
        "  no.yaml",
        "  bad.json document 1",
        "  bad.json document 3",
    ]
    assert "there twice, in line 2" in lines[2]
    assert "line 8" in lines[4]
    assert server.requests == []


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        (
            "kind: A\n{% if values.docs %}\nspec: {}\n{% endif %}\n",
            "line 2 shows: {% if values.docs %}",
        ),
        ("metadata:\n  name: {{cookiecutter.name}}\n", "line 2 shows: {{cookiecutter.name}}"),
        ("a: 1\n{%- for x in y %}\n", "line 2 shows: {%- for x in y %}"),
        ("{{ x }}: 1\n", "line 1 shows: {{ x }}"),
    ],
)
def test_a_template_of_a_catalog_file_is_told_as_one(
    factbook: Command, server: FakeServer, text: str, sign: str
) -> None:
    Path("skeleton.yaml").write_text(text)
    answer = factbook("push", "services", "skeleton.yaml")
    assert answer.exit_code == 2
    assert answer.stderr == (
        f"Error: skeleton.yaml is a template, as {sign}. Fill it in first, or leave it out.\n"
    )


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("metadata.name", "${{ values.name }}"),
        ("metadata.name", "{{ values.name }}"),
        ("metadata.name", "svc-${{ values.name }}"),
        ("metadata.namespace", "<% namespace %>"),
        ("kind", "${{ values.kind }}"),
        ("spec.owner", "${{ values.owner }}"),
        ("spec.type", "${{ values.type }}"),
    ],
)
@pytest.mark.parametrize("form", ["yaml", "json", "jsonl"])
def test_an_entity_that_a_template_has_to_fill_in_is_no_entity(
    factbook: Command, server: FakeServer, field: str, text: str, form: str
) -> None:
    entity = component("a")
    table, _, name = field.rpartition(".")
    (entity[table] if table else entity)[name] = text
    Path(f"skeleton.{form}").write_text(json.dumps(entity))
    for command in (("push", "services"), ("validate",)):
        answer = factbook(*command, f"skeleton.{form}")
        assert answer.exit_code == 2
        assert (
            f"is a template, as {field} shows: {text.removeprefix('svc-')}. Fill" in answer.stderr
        )
    assert server.requests == []


def test_a_template_and_an_entity_that_only_mentions_a_placeholder_are_pushed(
    factbook: Command, server: FakeServer
) -> None:
    said = {"metadata": {"name": "a", "annotations": {"run": "${{ github.sha }}"}}}
    template = {"kind": "Template", "spec": {"type": "service", "owner": "${{ owner }}"}}
    Path("all.json").write_text(json.dumps([component("a") | said, component("b") | template]))
    answer = factbook("push", "services", "all.json")
    assert "is a template" not in answer.stderr
    assert len(server.requests) == 1


def test_broken_yaml_that_names_a_placeholder_elsewhere_is_no_template(
    factbook: Command, server: FakeServer
) -> None:
    Path("bad.yaml").write_text("a: 'a {{ b }}'\nc: [\n")
    assert "is not valid YAML" in factbook("push", "services", "bad.yaml").stderr


def test_a_duplicate_names_the_places_of_both(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    Path("more.json").write_text(json.dumps([component("d"), component("B")]))
    answer = factbook("push", "services", catalog, "more.json", catalog)
    assert answer.exit_code == 1
    assert answer.stderr.splitlines() == [
        "Error: 3 entities are in the files more than once, nothing was written:",
        "  component:default/a: catalog.yaml document 1 (line 1), catalog.yaml document 1 (line 1)",
        "  component:default/b: catalog.yaml document 2 (line 9), more.json document 2, "
        "catalog.yaml document 2 (line 9)",
        "  component:default/c: catalog.yaml document 3 (line 17), "
        "catalog.yaml document 3 (line 17)",
        "--on-duplicate first or last keeps one of each.",
    ]
    assert server.requests == []


@pytest.mark.parametrize(("keep", "name"), [("first", "b"), ("last", "B")])
def test_of_duplicates_the_one_that_was_asked_for_is_pushed(
    factbook: Command, server: FakeServer, catalog: str, keep: str, name: str
) -> None:
    Path("more.json").write_text(json.dumps([component("B"), component("d")]))
    server.on("PUT", SERVICES, pushed("a", "b", "c", "d"))
    answer = factbook("push", "services", catalog, "more.json", "--on-duplicate", keep)
    assert answer.exit_code == 0
    assert answer.stderr == f"Duplicates left out: 1. Of each entity the {keep} one is kept.\n"
    assert server.sent() == {"items": [component(each) for each in ("a", name, "c", "d")]}


def test_very_many_problems_are_cut(factbook: Command, server: FakeServer, catalog: str) -> None:
    problems = [{"path": f"items[{n}]", "message": "is odd"} for n in range(250)]
    server.refuse("PUT", SERVICES, 400, "250 problems", problems=problems)
    lines = factbook("push", "services", catalog).stderr.splitlines()
    assert (len(lines), lines[-1]) == (102, "  and 150 more")


def test_conflicts_are_listed_with_their_owners_and_the_way_out(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    conflicts = [{"entityRef": "component:default/a", "owner": "other"}]
    server.refuse("PUT", SERVICES, 409, "1 entity belongs to others.", conflicts=conflicts)
    answer = factbook("push", "services", catalog)
    assert answer.exit_code == 1
    assert answer.stderr.splitlines() == [
        "Error: 1 conflict with other owners, nothing was written:",
        "  component:default/a, held by other",
        "--on-conflict take moves them into this set.",
    ]


def test_a_refusal_to_remove_is_the_servers_message(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    server.refuse("PUT", SERVICES, 409, "5 entities would be removed, more than 1.")
    answer = factbook("push", "services", catalog, "--max-removals", "1")
    assert answer.exit_code == 1
    assert answer.stderr == "Error: 5 entities would be removed, more than 1.\n"


@pytest.mark.parametrize("text", ["", "---\n---\n", "# nothing\n"])
def test_an_empty_input_does_not_empty_the_set(
    factbook: Command, server: FakeServer, text: str
) -> None:
    answer = factbook("push", "services", "-", input=text)
    assert answer.exit_code == 2
    assert 'To empty a set, push {"items": []}.' in answer.stderr
    assert server.requests == []


def test_an_empty_file_among_others_is_nothing(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    Path("empty.yaml").touch()
    server.on("PUT", SERVICES, pushed("a", "b", "c"))
    assert factbook("push", "services", "empty.yaml", catalog).exit_code == 0


def test_a_set_is_emptied_by_an_empty_list(factbook: Command, server: FakeServer) -> None:
    server.on("PUT", SERVICES, pushed())
    assert factbook("push", "services", "-", input='{"items": []}').exit_code == 0
    assert server.sent() == {"items": []}


def test_input_that_cannot_be_read_is_exit_code_2(
    factbook: Command, server: FakeServer, catalog: str, subtests: pytest.Subtests
) -> None:
    Path("list.yaml").write_text("kind: A\n---\n- 1\n")
    Path("bad.yaml").write_text("a: [\n")
    Path("bad.json").write_text("{")
    for file, message in [
        (".", "Error: . is a directory."),
        ("no.yaml", "Error: no.yaml cannot be read: No such file or directory."),
        ("list.yaml", "Error: list.yaml document 2 (line 3), item 1 is not an entity"),
        ("bad.yaml", "Error: bad.yaml is not valid YAML:"),
        ("bad.json", "Error: bad.json is not valid JSON:"),
    ]:
        with subtests.test(file=file):
            answer = factbook("push", "services", catalog, file)
            assert answer.exit_code == 2
            assert answer.stderr.startswith(message)
            assert len(answer.stderr.splitlines()) == 1
            assert server.requests == []


def test_text_of_the_server_cannot_drive_the_terminal(
    factbook: Command, server: FakeServer, catalog: str
) -> None:
    server.refuse("PUT", SERVICES, 409, "\x1b[2Jgone [red]or[/red] not\r")
    answer = factbook("push", "services", catalog)
    assert answer.stderr == "Error: \\x1b[2Jgone [red]or[/red] not\\r\n"


def test_sets_are_shown_as_a_table(factbook: Command, server: FakeServer) -> None:
    row = {"itemCount": 3, "revision": 2, "updatedBy": "user:default/a", "updatedAt": "today"}
    server.on("GET", SETS, {"sets": [{"id": "one [red]", **row}, {"id": "two", **row}]})
    lines = factbook("sets").stdout.splitlines()
    assert lines[0].split() == ["Set", "Entities", "Revision", "Updated", "by", "Updated"]
    assert lines[1].split() == ["one", "[red]", "3", "2", "user:default/a", "today"]
    assert len(lines) == 3


def test_the_age_of_a_set_is_shown_and_its_time_is_in_json(
    factbook: Command, server: FakeServer
) -> None:
    updated = iso(now() - 3 * DAY - HOUR)
    row = {"id": "s", "itemCount": 3, "revision": 2, "updatedBy": "user:default/a"}
    server.on("GET", SETS, {"sets": [{**row, "updatedAt": updated}]})
    assert factbook("sets").stdout.splitlines()[1].endswith("user:default/a  3 days ago")
    assert json.loads(factbook("sets", "--json").stdout)[0]["updatedAt"] == updated


def test_sets_are_printed_as_json(factbook: Command, server: FakeServer) -> None:
    row = {"id": "s", "itemCount": 3, "revision": 2, "updatedBy": "user:default/a"}
    server.on("GET", SETS, {"sets": [{**row, "updatedAt": "today"}]})
    assert json.loads(factbook("sets", "--json").stdout) == [{**row, "updatedAt": "today"}]


async def test_keys_that_differ_by_case_alone_are_kept(service: Service, served: Run) -> None:
    file = REPORTS / "04-keys-that-differ-by-case" / "entity.yaml"
    assert (await served("push", "t", str(file))).exit_code == 0
    entity = await service.catalog("template:default/t")
    assert entity is not None
    assert entity["metadata"]["labels"] == {"Tier": "1", "tier": "2"}
    assert entity["spec"]["steps"][0]["input"]["values"] == {"foobar": "1", "fooBar": "2"}


async def test_annotations_of_a_wrong_form_are_named_in_every_file(served: Run) -> None:
    folder = REPORTS / "05-annotations-of-a-wrong-form"
    lists, values = str(folder / "list.yaml"), str(folder / "values.yaml")
    answer = await served("push", "t", lists, values)
    assert answer.exit_code == 1
    lines = [line.strip() for line in answer.stderr.splitlines()]
    a, b = (
        "document 1 (line 1), component:default/a-05",
        "document 1 (line 1), component:default/b-05",
    )
    assert lines == [
        "Error: 4 problems, nothing was written:",
        f"{lists} {a}, metadata.annotations: has to be an object",
        f"{values} {b}, metadata.annotations.prometheus.io/scrape: has to be a string",
        f"{values} {b}, metadata.annotations.x/port: has to be a string",
        f"{values} {b}, metadata.tags: has to be an array",
    ]


async def test_documents_without_content_are_no_mistake(
    service: Service, served: Run, subtests: pytest.Subtests
) -> None:
    file = REPORTS / "07-empty-documents" / "documents.yaml"
    text = file.read_bytes().decode()
    for given in (text, text.replace("\n", "\r\n"), text.removeprefix("\ufeff"), f"{text}---\n"):
        with subtests.test(given=given):
            assert (await served("push", "t", "-", input=given)).exit_code == 0
            assert await service.catalog("component:default/a-07")
            await served("push", "t", "-", input='{"items": []}')
    answer = await served("push", "t", str(file))
    assert (answer.exit_code, answer.stdout.split(",")[0]) == (0, "t: 1 added")
    answer = await served("push", "t", "-", input="\ufeff# nothing\n---\n...\n")
    assert (answer.exit_code, "No entity in -" in answer.stderr) == (2, True)
