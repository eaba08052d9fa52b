"""The files of sources: what `new` writes, and how definitions are read, good ones and hostile."""

import json
import os
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from factbook.cli.sources import SourceType
from factbook.datasources.custom.definition import (
    OWNED_TYPES,
    SOURCE_TYPES,
    parse_source_definition,
)
from tests.cli.conftest import Command
from tests.cli.fake_server import FakeServer

SOURCES = "/api/tech-insights/v1/data-sources"


def definition(id_: str = "runbooks", **changes: Any) -> dict[str, Any]:
    """A source that looks at entities themselves."""
    return {
        "id": id_,
        "title": "Runbooks",
        "handlerDefinition": {
            "type": "entity",
            "config": {"id": id_, "extractor": "jmespath/1"},
        },
        "schema": {"title": {"type": "string", "extract": {"jmespath": "metadata.title"}}},
        **changes,
    }


def write(name: str, *documents: dict[str, Any]) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return name


@pytest.fixture
def nothing_there(server: FakeServer) -> None:
    """A server without sources."""
    server.on("GET", SOURCES, {"dataSources": [], "totalCount": 0})


# A new file


@pytest.mark.parametrize("type_", SOURCE_TYPES)
def test_a_new_file_is_a_valid_definition_of_its_type(factbook: Command, type_: str) -> None:
    answer = factbook("sources", "new", "my-source", "--type", type_)
    assert (answer.exit_code, answer.stdout) == (0, "my-source.yaml\n")
    assert ("sources test" in answer.stderr) == (type_ != "push")
    text = Path("my-source.yaml").read_text()
    found = parse_source_definition(yaml.safe_load(text))
    assert (found.source.id, found.source.title, found.type) == ("my-source", "My source", type_)
    assert text.count("\n#") + text.count("\n    #") > 3


def test_the_types_are_those_of_definitions() -> None:
    assert get_args(SourceType) == SOURCE_TYPES


def test_a_new_file_asks_for_http_unless_told_otherwise(factbook: Command) -> None:
    assert factbook("sources", "new", "builds").exit_code == 0
    assert parse_source_definition(yaml.safe_load(Path("builds.yaml").read_text())).type == "http"


@pytest.mark.parametrize(
    "name", ["true", "null", "1.10", "0x1f", "2026-11-21", "1e3", "12:30", "Yes", "a", "a.b_c-d"]
)
def test_a_name_that_yaml_would_take_for_something_else_stays_a_text(
    factbook: Command, name: str
) -> None:
    if ":" in name:
        assert factbook("sources", "new", name).exit_code == 2
        return
    assert factbook("sources", "new", name).exit_code == 0
    document = yaml.safe_load(Path(f"{name}.yaml").read_text())
    assert parse_source_definition(document).source.id == name


def test_a_name_that_no_id_can_be_writes_nothing(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    for name in ["../up", "a/b", "", ".hidden", "a b", "x" * 101, "a\nb: c"]:
        with subtests.test(name=name):
            answer = factbook("sources", "new", name)
            assert answer.exit_code == 2
            assert "is no id of a source" in answer.stderr
            assert list(Path().iterdir()) == []


@pytest.mark.parametrize("type_", sorted(OWNED_TYPES))
@pytest.mark.parametrize("owner", ["team-a", "Team-A", "default/team-a", "group:default/team-a"])
def test_a_new_file_states_the_group_that_is_to_own_it(
    factbook: Command, type_: str, owner: str
) -> None:
    answer = factbook("sources", "new", "builds", "--type", type_, "--owner", owner)
    assert answer.exit_code == 0, answer.stderr
    found = parse_source_definition(yaml.safe_load(Path("builds.yaml").read_text()))
    assert (found.source.owner, found.type) == ("group:default/team-a", type_)


def test_an_owner_of_odd_characters_is_read_as_it_was_given(factbook: Command) -> None:
    assert factbook("sources", "new", "builds", "--owner", 'übel "<id>\\').exit_code == 0
    found = parse_source_definition(yaml.safe_load(Path("builds.yaml").read_text()))
    assert found.source.owner == 'group:default/übel "<id>\\'


def test_an_owner_that_no_source_can_have_writes_nothing(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[list[str], str]] = [
        (["--owner", ""], '--owner: The entity reference "" is not of the form'),
        (["--owner", ":a"], '--owner: The entity reference ":a" is not of the form'),
        (["--owner", "a\nb: c"], "--owner: The entity reference"),
        (["--owner", "x" * 700], "longer than any entity has"),
        (["--owner", "user:kim"], "--owner has to be a group, such as team-shop"),
        (["--owner", "a", "--type", "repository-file"], "only http, entity and push have one"),
        (["--owner", "a", "--integration"], "a package has no owner"),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments):
            answer = factbook("sources", "new", "builds", *arguments)
            assert answer.exit_code == 2
            assert message in answer.stderr
            assert list(Path().iterdir()) == []


def test_a_file_that_is_there_is_kept(factbook: Command) -> None:
    Path("builds.yaml").write_text("mine")
    Path("linked.yaml").symlink_to("nowhere.yaml")
    for name in ("builds", "linked"):
        answer = factbook("sources", "new", name)
        assert (answer.exit_code, answer.stderr) == (2, f"Error: {name}.yaml exists already.\n")
    assert Path("builds.yaml").read_text() == "mine"
    assert not Path("nowhere.yaml").exists()


# What is read


@pytest.mark.usefixtures("nothing_there")
def test_directories_are_read_with_those_below_them(factbook: Command) -> None:
    write("sources/a.yaml", definition("a"), definition("b"))
    write("sources/team/c.yml", definition("c"))
    Path("sources/d.json").write_text(json.dumps(definition("d")))
    Path("sources/README.md").write_text("# Sources")
    write("sources/.git/e.yaml", definition("e"))
    write("sources/a/web.recording.json", {"source": "a"})
    answer = factbook("sources", "plan", "sources", "sources/a.yaml")
    assert answer.exit_code == 5, answer.output
    heads = [line.partition(":")[0] for line in answer.stdout.splitlines() if "is new" in line]
    assert heads == ["a", "b", "d", "c"]


def test_every_problem_of_every_file_is_told_at_once(factbook: Command, server: FakeServer) -> None:
    write("sources/a.yaml", definition("a", title=""), definition("b", colour="red"))
    broken = definition("c")
    broken["handlerDefinition"]["config"]["method"] = "GET"
    broken["schema"]["title"]["extract"] = {"jmespath": "a["}
    write("sources/c.yaml", broken)
    write("sources/d.yaml", definition("d", version="2.0.0", draft=False))
    write("sources/e.yaml", definition("e"))
    write("sources/f.yaml", definition("e"))
    Path("sources/g.yaml").write_text("a: [")
    Path("sources/h.json").write_text('{"id": ')
    Path("sources/i.yaml").write_text("- not a definition\n")
    answer = factbook("sources", "apply", "sources", "none.yaml", "--yes")
    assert answer.exit_code == 2
    assert server.requests == []
    head, *lines = answer.stderr.splitlines()
    assert head == f"Error: {len(lines)} problems:"
    starts = [
        "sources/a.yaml document 1 (line 1): title: has to be a string that is not blank",
        "sources/a.yaml document 2 (line 14): colour: is not a field of a data source",
        "sources/c.yaml document 1 (line 1): handlerDefinition.config.method: is not a setting",
        "sources/c.yaml document 1 (line 1): schema.title.extract: is not a JMESPath expression",
        "sources/d.yaml document 1 (line 1): version: is set by the service; leave it out",
        "sources/d.yaml document 1 (line 1): draft: is set by the service; leave it out",
        "sources/g.yaml is not valid YAML: ",
        "sources/h.json is not valid JSON: ",
        "sources/i.yaml document 1 (line 1), item 1 is not a definition of a source: a mapping",
        "none.yaml cannot be read: No such file or directory.",
        "sources/f.yaml document 1 (line 1): id: is the id of sources/e.yaml document 1 (line 1)",
    ]
    assert len(lines) == len(starts)
    assert all(any(line.strip().startswith(start) for line in lines) for start in starts), lines


HOSTILE = {
    "binary": b"\x00\x01\xff\xfe\x80" * 100,
    "not UTF-8": b"id: \xff\xfe\n",
    "deep lists": b"[" * 10_000,
    "deep mappings": b"".join(b" " * n + b"a:\n" for n in range(500)),
    "deep JSON": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "an expansion": b"a: &a [x,x,x,x,x,x,x,x]\n"
    + b"".join(
        b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 8)) for c in range(98, 108)
    ),
    "an object of Python": b"!!python/object/apply:os.system ['touch hacked']\n",
    "a key twice": b"id: a\nid: b\n",
    "10 MB": b"#" * 10_000_000,
    "a number that JSON lacks": b"id: .nan\n",
    "a key that is a list": b"? [a]\n: b\n",
}


def test_a_hostile_file_is_a_problem_that_names_it(
    factbook: Command, server: FakeServer, subtests: pytest.Subtests
) -> None:
    for name, data in HOSTILE.items():
        with subtests.test(name):
            Path("bad.yaml").write_bytes(data)
            answer = factbook("sources", "apply", "bad.yaml", "--yes")
            assert answer.exit_code == 2
            assert answer.stderr.startswith("Error: 1 problem:\n  bad.yaml ")
            assert len(answer.stderr.splitlines()) == 2
            assert server.requests == []
            assert not Path("hacked").exists()


@pytest.mark.usefixtures("nothing_there")
def test_links_that_lead_round_in_circles_are_not_followed(factbook: Command) -> None:
    write("sources/a.yaml", definition("a"))
    Path("sources/again").symlink_to(Path("sources").absolute())
    assert factbook("sources", "plan", "sources").stdout.endswith("1 to create\n")
    Path("sources/loop.yaml").symlink_to("loop.yaml")
    answer = factbook("sources", "plan", "sources")
    assert answer.exit_code == 2
    assert "sources/loop.yaml cannot be read: Too many levels of symbolic links." in answer.stderr


@pytest.mark.usefixtures("nothing_there")
def test_a_pipe_in_a_directory_is_passed_over(factbook: Command) -> None:
    write("sources/a.yaml", definition("a"))
    os.mkfifo("sources/b.yaml")
    assert factbook("sources", "plan", "sources").stdout.endswith("1 to create\n")


def test_a_file_that_cannot_be_read_is_a_problem(factbook: Command) -> None:
    write("sources/a.yaml", definition("a"))
    Path("sources/b.yaml").symlink_to("/proc/self/mem")  # an error even for root
    answer = factbook("sources", "plan", "sources")
    assert answer.exit_code == 2
    assert answer.stderr == (
        "Error: 1 problem:\n  sources/b.yaml cannot be read: Input/output error.\n"
    )


# The list


def test_options_before_a_command_are_refused(factbook: Command) -> None:
    answer = factbook("sources", "--json", "list")
    assert (answer.exit_code, answer.stderr) == (2, "Error: Options of list come after its name.\n")


def test_sources_without_a_command_are_listed(factbook: Command, tmp_path: Path) -> None:
    url = f"--database-url=sqlite:///{tmp_path}/factbook.db"
    factbook("migrate", url)
    listed = factbook("sources", url, "--json")
    assert (listed.exit_code, listed.stdout) == (0, "[]\n")
    assert factbook("sources", "list", url, "--json").stdout == listed.stdout
