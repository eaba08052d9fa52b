"""`factbook entities`, `factbook facets`, `factbook facts` and `factbook call`."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.cli.fake_server import ALL_TOOLS, FakeServer, component, result, unable

ENTITIES = "/api/catalog/entities"
QUERY = f"{ENTITIES}/by-query"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "limit": {"type": "integer"},
        "ratio": {"type": "number"},
        "draft": {"type": "boolean"},
        "facts": {"type": "array"},
        "filter": {"type": "object"},
        "any": {},
    },
}


# entities


def page(*names: str, following: str | None = None) -> dict[str, Any]:
    """A page of what a query found."""
    cursors = {"nextCursor": following} if following else {}
    return {"items": [component(name) for name in names], "totalItems": 9, "pageInfo": cursors}


def test_entities_are_shown_as_a_table(factbook: Command, server: FakeServer) -> None:
    payments = component("Payments")
    payments["metadata"]["annotations"] = {"acme.test/entity-set": "services", "other": "x"}
    group = {"kind": "Group", "metadata": {"name": "a", "namespace": "Eu"}}
    server.on("GET", ENTITIES, [payments, group])
    lines = factbook("entities").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["Entity", "Type", "Owner", "Set"],
        ["component:default/payments", "service", "team-a", "services"],
        ["group:eu/a"],
    ]


def test_entities_are_selected_by_options(factbook: Command, server: FakeServer) -> None:
    server.on("GET", ENTITIES, [])
    server.on("GET", QUERY, page("a"))
    arguments = ["--filter", "kind=api", "--filter", "kind=group", "--order", "desc:kind"]
    answer = factbook("entities", *arguments, "--limit", "20")
    assert (answer.exit_code, answer.stderr) == (0, "0 entities\n")
    params = server.requests[0].url.params
    assert params.get_list("filter") == ["kind=api", "kind=group"]
    assert (params["order"], params["limit"]) == ("desc:kind", "20")


def test_entities_as_json_are_whole(factbook: Command, server: FakeServer) -> None:
    server.on("GET", ENTITIES, [component("a")])
    assert json.loads(factbook("entities", "--json").stdout) == [component("a")]
    assert "fields" not in server.last.url.params


def test_entities_are_searched_in_their_names_and_titles(
    factbook: Command, server: FakeServer
) -> None:
    server.on("GET", QUERY, page("pay", "payments", following="more"))
    server.on("GET", QUERY, page("prepaid"))
    answer = factbook("entities", "--search", "pay", "--filter", "kind=component")
    assert answer.exit_code == 0
    shown = [line.split()[0] for line in answer.stdout.splitlines()[1:]]
    assert shown == [f"component:default/{name}" for name in ("pay", "payments", "prepaid")]
    first, second = (request.url.params for request in server.requests)
    assert (first["fullTextFilterTerm"], first["filter"]) == ("pay", "kind=component")
    assert first["fullTextFilterFields"] == "metadata.name,metadata.title"
    assert first["orderField"] == "metadata.name,asc"
    assert (second["cursor"], second["fields"]) == ("more", first["fields"])


def test_a_search_can_be_ordered_and_limited(factbook: Command, server: FakeServer) -> None:
    server.on("GET", QUERY, page("a", "b", "c", following="more"))
    arguments = ["--search", "pay", "--order", "desc:metadata.title", "--limit", "2", "--json"]
    answer = factbook("entities", *arguments)
    assert json.loads(answer.stdout) == [component("a"), component("b")]
    assert server.last.url.params["orderField"] == "metadata.title,desc"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("arguments", "asked", "total", "told"),
    [
        ([], "bounded", 9, "1 of 9 entities\n"),
        ([], "bounded", 10_001, "1 of more than 10,000 entities; --exact counts them\n"),
        ([], "bounded", 12_345, "1 of 12,345 entities\n"),
        (["--exact"], "include", 10_001, "1 of 10,001 entities\n"),
    ],
)
def test_a_large_number_of_others_is_counted_on_demand(
    factbook: Command, server: FakeServer, arguments: list[str], asked: str, total: int, told: str
) -> None:
    server.on("GET", ENTITIES, [component("a")])
    server.on("GET", QUERY, page("a") | {"totalItems": total})
    answer = factbook("entities", "--filter", "kind=api", "--limit", "1", *arguments)
    assert (answer.exit_code, answer.stderr) == (0, told)
    assert server.last.url.params["totalItems"] == asked


@pytest.mark.parametrize("order", ["metadata.name", "up:metadata.name", "asc:"])
def test_a_search_in_no_known_order_is_wrong_usage(
    factbook: Command, server: FakeServer, order: str
) -> None:
    answer = factbook("entities", "--search", "pay", "--order", order)
    assert answer.exit_code == 2
    assert "is not of the form asc:FIELD or desc:FIELD." in answer.stderr
    assert server.requests == []


# facets

FACETS = {"kind": [{"value": "API", "count": 2}], "spec.type": [{"value": "a b", "count": 1}]}


def test_entities_are_counted_by_the_values_of_fields(
    factbook: Command, server: FakeServer
) -> None:
    server.on("GET", "/api/catalog/entity-facets", {"facets": FACETS})
    answer = factbook("facets", "kind", "spec.type", "--filter", "spec.owner=team-a")
    assert [line.split() for line in answer.stdout.splitlines()] == [
        ["Field", "Value", "Entities"],
        ["kind", "API", "2"],
        ["spec.type", "a", "b", "1"],
    ]
    params = server.last.url.params
    assert (params.get_list("facet"), params["filter"]) == (
        ["kind", "spec.type"],
        "spec.owner=team-a",
    )


def test_counts_as_json_are_as_the_server_gives_them(factbook: Command, server: FakeServer) -> None:
    server.on("GET", "/api/catalog/entity-facets", {"facets": FACETS})
    assert json.loads(factbook("facets", "kind", "--json").stdout) == FACETS


# facts


def with_sources(server: FakeServer) -> list[dict[str, Any]]:
    """Two sources, one of which has a fact about every entity; gives the calls for facts."""
    asked: list[dict[str, Any]] = []

    def facts(arguments: dict[str, Any]) -> dict[str, Any]:
        asked.append(arguments)
        answer = {"dataSourceId": arguments["dataSourceId"], "entityRef": "component:default/a"}
        if arguments["dataSourceId"] == "docs":
            return result({**answer, "facts": {}, "unknownReasons": {"*": "never-collected"}})
        return result(
            {
                **answer,
                "dataSourceTitle": "Who owns it",
                "facts": {"hasOwner": True, "tags": ["x", 1], "none": None},
                "timestamp": "2026-11-21T06:00:00.000+00:00",
                "unknownReasons": {"*": "not-found", "score": "forbidden: no"},
            }
        )

    sources = [{"id": "owners"}, {"id": "docs"}]
    server.on_tool("get-data-source-discovery", lambda _: result({"dataSources": sources}))
    server.on_tool("get-entity-facts", facts)
    return asked


def test_the_facts_of_every_source_are_shown(factbook: Command, server: FakeServer) -> None:
    asked = with_sources(server)
    answer = factbook("facts", "a")
    assert answer.exit_code == 0
    assert [line.split() for line in answer.stdout.splitlines()] == [
        ["Who", "owns", "it", "(owners),", "2026-11-21T06:00:00.000+00:00"],
        ["Fact", "Value", "Why", "unknown"],
        ["hasOwner", "true"],
        ["tags", "x,", "1"],
        ["none", "null"],
        ["score", "forbidden:", "no"],
        ["all", "others", "not-found"],
        [],
        ["docs", "(docs),", "nothing", "is", "known"],
        ["Fact", "Value", "Why", "unknown"],
        ["all", "never-collected"],
        [],
    ]
    assert asked == [
        {"dataSourceId": id, "name": "a", "namespace": "default", "kind": "component"}
        for id in ("owners", "docs")
    ]


def test_the_facts_of_one_source_are_asked_for(factbook: Command, server: FakeServer) -> None:
    asked = with_sources(server)
    answer = json.loads(
        factbook("facts", "API:billing/Invoices", "--source", "owners", "--json").stdout
    )
    assert answer["facts"]["hasOwner"] is True
    assert asked == [
        {"dataSourceId": "owners", "name": "invoices", "namespace": "billing", "kind": "api"}
    ]


def test_facts_of_all_sources_as_json_are_a_list(factbook: Command, server: FakeServer) -> None:
    with_sources(server)
    answer = json.loads(factbook("facts", "a", "--json").stdout)
    assert [facts["dataSourceId"] for facts in answer] == ["owners", "docs"]


def test_a_server_without_sources_says_so(factbook: Command, server: FakeServer) -> None:
    server.on_tool("get-data-source-discovery", lambda _: result({"dataSources": []}))
    answer = factbook("facts", "a")
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert answer.stderr == "The server has no data sources.\n"


def test_an_unknown_entity_is_the_tools_message(factbook: Command, server: FakeServer) -> None:
    with_sources(server)
    server.on_tool("get-entity-facts", lambda _: unable("No entity a. Did you mean b?"))
    answer = factbook("facts", "a")
    assert answer.exit_code == 1
    assert answer.stderr == "Error: No entity a. Did you mean b?\n"


@pytest.mark.parametrize("ref", ["", "component:", "/a", "component:default/"])
def test_a_bad_reference_is_wrong_usage(factbook: Command, server: FakeServer, ref: str) -> None:
    assert factbook("facts", ref).exit_code == 2
    assert server.requests == []


# call


def test_a_tool_is_called_with_arguments_of_its_types(
    factbook: Command, server: FakeServer
) -> None:
    server.on_tool("get-things", result, SCHEMA)
    arguments = [
        "name=a=b",
        "limit=10",
        "ratio=1.5",
        "draft=false",
        'facts=["a", "b"]',
        'filter={"a": 1}',
        "any=plain",
    ]
    answer = factbook("call", "get-things", *arguments)
    assert answer.exit_code == 0
    assert json.loads(answer.stdout) == {
        "name": "a=b",
        "limit": 10,
        "ratio": 1.5,
        "draft": False,
        "facts": ["a", "b"],
        "filter": {"a": 1},
        "any": "plain",
    }


def test_a_string_argument_that_looks_like_a_number_stays_a_string(
    factbook: Command, server: FakeServer
) -> None:
    server.on_tool("get-things", result, SCHEMA)
    assert json.loads(factbook("call", "get-things", "name=10").stdout) == {"name": "10"}


def test_json_is_on_one_line_when_asked(factbook: Command, server: FakeServer) -> None:
    server.on_tool("get-things", result, SCHEMA)
    assert factbook("call", "get-things", "limit=1", "--json").stdout == '{"limit":1}\n'
    assert factbook("call", "get-things", "limit=1").stdout == '{\n  "limit": 1\n}\n'


def test_a_tool_may_be_written_with_underscores(factbook: Command, server: FakeServer) -> None:
    server.on_tool("get-things", result)
    assert factbook("call", "get_things").exit_code == 0
    assert server.sent()["params"]["name"] == "get-things"


def test_a_tool_that_the_tool_call_endpoint_lacks_is_called_at_mcp(
    factbook: Command, server: FakeServer
) -> None:
    server.on_tool("get-more", result, path=ALL_TOOLS)
    assert factbook("call", "get-more").exit_code == 0
    assert server.requests[-1].url.path == "/mcp"


def test_a_wrong_tool_or_argument_is_wrong_usage(
    factbook: Command, server: FakeServer, subtests: pytest.Subtests
) -> None:
    server.on_tool("get-things", result, SCHEMA)
    server.on_tool("get-more", result)
    cases: list[tuple[list[str], str]] = [
        (
            ["get-stuff"],
            'There is no tool "get-stuff". Did you mean get-things? There are: get-things,',
        ),
        (["get-things", "size=1"], 'get-things has no argument "size". Its arguments are: name,'),
        (["get-more", "size=1"], 'get-more has no argument "size". Its arguments are: none.'),
        (["get-things", "name"], '"name" is not of the form key=value.'),
        (["get-things", "limit=many"], 'limit has to be of type integer, not "many".'),
        (["get-things", "limit=1.5"], 'limit has to be of type integer, not "1.5".'),
        (["get-things", "draft=yes"], 'draft has to be of type boolean, not "yes".'),
        (["get-things", "facts=a"], 'facts has to be of type array, for example ["a","b"],'),
        (["get-things", "filter=a"], 'filter has to be of type object, for example {"a":1},'),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments):
            answer = factbook("call", *arguments)
            assert answer.exit_code == 2
            assert answer.stderr.startswith(f"Error: {message}")
            assert server.sent()["method"] == "tools/list"


def test_a_tool_that_cannot_answer_is_exit_code_1(factbook: Command, server: FakeServer) -> None:
    server.on_tool("get-things", lambda _: unable("The name is missing. Give one."))
    answer = factbook("call", "get-things")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr == "Error: The name is missing. Give one.\n"
