from typing import Any

import pytest

from factbook.checks.rules import check_definition
from factbook.errors import InputError
from tests.checks.making import entity

DOCUMENT = {
    "metadata": {
        "name": "shop",
        "annotations": {
            "github.com/project-slug": "acme/shop",
            "runbook": "https://wiki.example/shop",
            "script": "javascript:alert(1)",
            "evil": "@evil.example/",
        },
        "tags": ["java", "web"],
    },
    "spec": {"owner": "web@acme.example", "size": 3, "live": True, "deep": {"a": 1}},
}
FACTS = {"code": {"issues.open": 7, "protected": False, "languages": ["go", "c"]}}


def test_a_message_shows_values_of_the_entity() -> None:
    expected = {
        "plain": "plain",
        "{{ metadata.name }} has {{facts.code['issues.open']}} issues": "shop has 7 issues",
        '{{ facts.code["protected"] }}': "false",
        "{{ facts.code.languages }}": "go, c",
        "{{ facts['code']['languages'] }}": "go, c",
        "{{ metadata.annotations['github.com/project-slug'] }}": "acme/shop",
        "{{ metadata.tags }}, {{ spec.size }}, {{ spec.live }}": "java, web, 3, true",
        "{{ facts.code.approvals }} of {{ facts.other.x }}": "unknown of unknown",
        "{{ metadata.title }} {{ metadata.name.x }} {{ spec.deep }}": "unknown unknown unknown",
    }
    assert {
        template: check_definition.parse_template(template).text(entity(FACTS, document=DOCUMENT))
        for template in expected
    } == expected


def test_a_link_is_an_address_or_none(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str | None]] = [
        ("https://x.example/{{ metadata.name }}", "https://x.example/shop"),
        (
            "https://github.com/{{ metadata.annotations['github.com/project-slug'] }}/settings",
            "https://github.com/acme/shop/settings",
        ),
        ("{{ metadata.annotations.runbook }}", "https://wiki.example/shop"),
        (
            "{{ metadata.annotations.runbook }}#{{ metadata.name }}",
            "https://wiki.example/shop#shop",
        ),
        ("mailto:{{ spec.owner }}", "mailto:web@acme.example"),
        ("{{ metadata.annotations.script }}", None),
        ("{{ metadata.name }}", None),
        ("https://x.example/{{ metadata.title }}", None),
        (
            "https://x.example{{ metadata.annotations.evil }}",
            None,
        ),
    ]
    for template, link in cases:
        with subtests.test(template=template):
            assert (
                check_definition.parse_link_template(template).link(
                    entity(FACTS, document=DOCUMENT)
                )
                == link
            )


@pytest.mark.parametrize(
    "link",
    ["https://x.example\\@evil.example/", "https://x.example/\u202egpj.exe", "https://a\u200b.b/"],
)
def test_a_link_that_shows_another_address_than_it_leads_to_is_none(link: str) -> None:
    document = {"spec": {"link": link}}

    assert (
        check_definition.parse_link_template("{{ spec.link }}").link(entity(document=document))
        is None
    )
    with pytest.raises(InputError, match="backslash"):
        check_definition.parse_link_template(f"{link}{{{{ metadata.name }}}}")


def test_a_template_that_breaks_is_refused(subtests: pytest.Subtests) -> None:
    cases = [
        ("{{ a", "without"),
        ("a }} b", "without"),
        ("{{ }}", "isn't a path"),
        ("{{ a. }}", "isn't a path"),
        ("{{ a | upper }}", "isn't a path"),
        ("{{ a[0] }}", "isn't a path"),
        ("{{ a[''] }}", "isn't a path"),
        ("{{ facts }}", "facts.SOURCE"),
        ("{{ facts.code.a.b }}", "facts.SOURCE"),
        ("x" * 5_001, "longer"),
        ("{{a}}" * 51, "50 values"),
    ]
    for text, words in cases:
        with subtests.test(text=text), pytest.raises(InputError, match=words):
            check_definition.parse_template(text)


def test_a_long_value_is_cut() -> None:
    long: dict[str, Any] = {"metadata": {"name": "x" * 5_000, "tags": ["y" * 100] * 1_000}}

    for path in ("name", "tags"):
        assert (
            len(
                check_definition.parse_template(f"{{{{ metadata.{path} }}}}").text(
                    entity(document=long)
                )
            )
            == 1000
        )
