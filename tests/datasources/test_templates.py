"""Values of an entity in a request: each stays what it is, wherever it goes."""

from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.datasources.custom import definition
from factbook.datasources.custom.sources import Rendered, render_request
from factbook.errors import InputError, InvalidItemsError
from factbook.outbound.outcomes import Missing, Outcome

ENTITY = {
    "kind": "Component",
    "metadata": {"name": "web", "annotations": {"acme.com/id": "a/b?c", "acme.com/n": 7}},
    "spec": {"live": True, "tags": ["x"], "empty": ""},
}


def request(entity: dict[str, Any] | None = None, **config: Any) -> Rendered | Missing:
    """What an http source with this configuration asks for."""
    document = {
        "id": "x",
        "title": "X",
        "handlerDefinition": {
            "type": "http",
            "config": {"id": "x", "connection": "ci", "path": "/x", **config},
        },
        "schema": {"a": {"type": "string", "extract": {"jmespath": "a"}}},
    }
    found = definition.parse_source_definition(document).request
    assert found is not None
    return render_request(found, ENTITY if entity is None else entity)


def path(text: str) -> str:
    found = request(path=text)
    assert isinstance(found, Rendered)
    return found.path


def test_values_are_put_into_a_path() -> None:
    expected = {
        "/jobs/{{ metadata.name }}/last": "/jobs/web/last",
        '/jobs/{{ metadata.annotations."acme.com/id" }}': "/jobs/a%2Fb%3Fc",
        '/n/{{metadata.annotations."acme.com/n"}}': "/n/7",
        "/live/{{ spec.live }}": "/live/true",
        "/{{ kind }}-{{ metadata.name }}?a=1": "/Component-web?a=1",
        "/kind/{{ kind == 'Component' && 'component' || 'other' }}": "/kind/component",
        "/plain": "/plain",
    }
    assert {template: path(template) for template in expected} == expected


def test_query_headers_and_body_are_written_each_in_its_own_way() -> None:
    annotation = '{{ metadata.annotations."acme.com/id" }}'
    found = request(
        method="POST",
        path="/x?fixed=1",
        query={"q": f"id:{annotation}"},
        headers={"X-Id": annotation},
        body={"query": "fixed", "variables": {"ids": [annotation, 1, None, True]}},
    )
    assert found == Rendered(
        "POST",
        "/x?fixed=1&q=id%3Aa%2Fb%3Fc",
        {"x-id": "a/b?c"},
        {"query": "fixed", "variables": {"ids": ["a/b?c", 1, None, True]}},
    )


@pytest.mark.parametrize("text", ["spec.nothing", "spec.tags", "spec.empty", "metadata"])
def test_an_entity_without_the_value_is_told_as_such(text: str) -> None:
    found = request(path=f"/x/{{{{ {text} }}}}")
    assert isinstance(found, Missing)
    assert found.reason == f"no-annotation: the entity has no {text}"


def test_a_value_that_climbs_or_is_endless_is_no_value(subtests: pytest.Subtests) -> None:
    for value in (".", "..", "a/../b", "..\\b", "./a", "/.;x", "a/..;", "a" * 1_001):
        with subtests.test(value=value):
            found = request({"metadata": {"name": value}}, path="/x/{{ metadata.name }}/y")
            assert isinstance(found, Missing)
            assert found.outcome is Outcome.NO_ANNOTATION


@pytest.mark.parametrize("value", ["a\r\nx-admin: yes", "a\nb", "é", "a\0"])
def test_a_header_holds_no_line_of_its_own(value: str) -> None:
    found = request({"metadata": {"name": value}}, headers={"x-name": "{{ metadata.name }}"})
    assert isinstance(found, Missing)


@given(st.text(min_size=1, max_size=50))
def test_no_value_changes_the_path_around_it(value: str) -> None:
    entity = {"metadata": {"name": value}}
    found = request(entity, path="/a/{{ metadata.name }}/b", query={"q": "{{ metadata.name }}"})
    if isinstance(found, Missing):
        assert "." in value or not value.isprintable() or not value.strip()
        return
    parts = urlsplit(f"https://host{found.path}")
    head, name, tail = parts.path.split("/")[1:]
    assert (head, unquote(name, errors="strict"), tail) == ("a", value, "b")
    assert parts.fragment == ""


def test_what_is_no_template_is_refused_when_it_is_defined(subtests: pytest.Subtests) -> None:
    for text in ("{{", "}}", "{{ a", "a }}", "{{ a }} }}", "x" * 2_001, "{{ ( }}"):
        with subtests.test(text=text), pytest.raises(InputError):
            request(path=text)


def test_a_path_that_is_not_below_the_connection_is_refused_when_it_is_defined(
    subtests: pytest.Subtests,
) -> None:
    texts = [
        "x",
        "{{ metadata.name }}/x",
        "//other.example/x",
        "https://other.example/x",
        "//connection.invalid/x",
        "https://connection.invalid/x",
        "/a/../b",
        "/a/%2e%2E/b",
        "/./b",
        "/a b",
        "/a#b",
        "/a\\b",
        "/a\nb",
    ]
    for text in texts:
        with subtests.test(text=text):
            with pytest.raises(InvalidItemsError) as refused:
                request(path=text)
            assert refused.value.details["problems"] == [
                {
                    "path": "handlerDefinition.config.path",
                    "message": "has to be below the address of the connection, such as /a/b",
                }
            ]


def test_a_header_that_changes_what_a_request_is_is_refused(subtests: pytest.Subtests) -> None:
    cases = [
        ("Host", "other.example", "is not a header that a source can set"),
        ("content-length", "0", "is not a header that a source can set"),
        ("Transfer-Encoding", "chunked", "is not a header that a source can set"),
        ("X-Forwarded-Host", "other.example", "is not a header that a source can set"),
        ("X-HTTP-Method-Override", "DELETE", "is not a header that a source can set"),
        ("x\r\nadmin", "yes", "is not a header that a source can set"),
        ("", "yes", "is not a header that a source can set"),
        ("x-a", "b\r\nx-admin: yes", "has to be of printable ASCII"),
        ("x-a", "é{{ metadata.name }}", "has to be of printable ASCII"),
    ]
    for name, text, told in cases:
        with subtests.test(name=name, text=text):
            with pytest.raises(InvalidItemsError) as refused:
                request(headers={name: text})
            path = f"handlerDefinition.config.headers.{name}"
            assert refused.value.details["problems"] == [{"path": path, "message": told}]
