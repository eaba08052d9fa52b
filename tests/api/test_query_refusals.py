"""by-query refuses what it does not understand and says which part, and never breaks."""

import base64
from typing import Any

import pytest

from tests.api.querying import QUERY, posted, refusal
from tests.service import Service


@pytest.mark.spec("catalog.by-query-post")
async def test_what_is_no_predicate_is_refused_by_its_part(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, str]] = [
        ({"$all": {}}, "$all takes a list"),
        ({"$any": [1]}, "not 1"),
        ({"$any": [], "kind": "a"}, "only key"),
        ({"$not": "component"}, "not 'component'"),
        ({"$nor": []}, "no operator"),
        ({"kind": None}, '"kind"'),
        ({"kind": ["a"]}, '"kind"'),
        ({"kind": {"$in": [None]}}, '"kind"'),
        ({"kind": {"$in": ["a"], "$exists": True}}, '"kind"'),
        ({"kind": {"$exists": "yes"}}, '"kind"'),
        ({"kind": {"$hasPrefix": 1}}, '"kind"'),
        ({"relations": {"$contains": {}}}, "type, targetRef"),
        ({"relations": {"$contains": {"type": 1}}}, "not 1"),
        ({"kind": {"$contains": {"type": "ownedBy"}}}, '"kind"'),
    ]
    for query, message in cases:
        with subtests.test(query=query):
            assert message in await refusal(service, {"query": query})


@pytest.mark.spec("catalog.by-query-post")
async def test_predicates_are_bounded_in_number_and_depth(service: Service) -> None:
    wide = {"kind": {"$in": ["a"] * 501}}
    assert "500 conditions" in await refusal(service, {"query": wide})
    deep: dict[str, Any] = {"kind": "a"}
    for _ in range(40):
        deep = {"$not": deep}
    assert "30 deep" in await refusal(service, {"query": deep})
    most: dict[str, Any] = {"$any": [{"kind": {"$hasPrefix": str(n)}} for n in range(440)]}
    for _ in range(25):
        most = {"$all": [most]}
    assert (await posted(service, query=most))["totalItems"] == 0


@pytest.mark.spec("catalog.by-query")
async def test_what_by_query_does_not_understand_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, str], str]] = [
        ({"limit": "-1"}, "from 0 to 10000"),
        ({"limit": "10001"}, "from 0 to 10000"),
        ({"offset": "x"}, "offset"),
        ({"orderField": "metadata.name,up"}, "<field>,asc or <field>,desc"),
        ({"cursor": "nonsense"}, "not a cursor"),
        ({"cursor": base64.b64encode(b"[]").decode()}, "not a cursor"),
        ({"totalItems": "maybe"}, "include"),
        ({"fullTextFilterTerm": "x" * 201}, "200 characters"),
        ({"fullTextFilter[fields]": "x"}, "Unknown query parameter"),
        ({"filter": "=x"}, "without a key"),
    ]
    for query, message in cases:
        with subtests.test(query=query):
            answer = await service.http.get(QUERY, params=query)
            assert answer.status_code == 400, answer.text
            assert message in answer.json()["error"]["message"]
