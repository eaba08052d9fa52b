"""From the items of a push to entities ready to store."""

import json
from typing import Any

import msgspec
import pytest

from factbook.catalog.sets import Annotator, PreparedPush, PushRules, decode_body, prepare_items
from factbook.errors import InputError, InvalidItemsError, PayloadTooLargeError
from tests.service import component, resource

RULES = PushRules(Annotator("factbook", "factbook"))


def prepared(*items: Any, rules: PushRules = RULES) -> PreparedPush:
    return prepare_items([msgspec.Raw(json.dumps(item).encode()) for item in items], "first", rules)


def problems(*items: Any, rules: PushRules = RULES) -> dict[str, str]:
    with pytest.raises(InvalidItemsError) as caught:
        prepared(*items, rules=rules)
    return {problem["path"]: problem["message"] for problem in caught.value.details["problems"]}


def test_a_body_that_is_no_object_with_items_is_refused(subtests: pytest.Subtests) -> None:
    bodies = [
        b"", b" ", b"{", b"[]", b"null", b"7", b'"items"', b"{}", b'{"items":null}',
        b'{"items":{}}', b'{"items":[}', b'{"items":[]} x', b'{"items":[NaN]}',
        b'\xef\xbb\xbf{"items":[]}',
        b'{"items":["\xff"]}', b'{"items":[1,]}', b"{'items':[]}", b"\xff\xfe", b"[" * 100_000,
    ]  # fmt: skip
    for body in bodies:
        with subtests.test(body=body), pytest.raises(InputError):
            prepare_items(decode_body(body, RULES), "first", RULES)


@pytest.mark.parametrize(
    "text", [b'"\\ud800"', b'{"a":1e999}', b'"\xff"', b'{"a":' + b"9" * 5_000 + b"}"]
)
def test_an_item_that_no_json_reader_takes_is_refused_by_its_position(text: bytes) -> None:
    with pytest.raises(InvalidItemsError) as caught:
        prepare_items(
            [msgspec.Raw(json.dumps(component("a")).encode()), msgspec.Raw(text)], "s", RULES
        )
    assert [problem["path"] for problem in caught.value.details["problems"]] == ["items[1]"]


def test_the_document_keeps_what_was_sent_and_gets_our_annotations() -> None:
    sent = resource("Master Account", foreign={"deep": [1, 2.5, None, True, 10**40]})
    [item] = prepared(sent).items
    document = json.loads(item.document)
    annotations = document["metadata"].pop("annotations")
    assert document == sent
    assert list(document) == ["apiVersion", "kind", "metadata", "spec"]
    assert len(annotations) == 3
    assert item.ref == "resource:default/master account"


def test_nesting_is_counted_from_the_entity() -> None:
    rules = msgspec.structs.replace(RULES, max_depth=8)
    deep: Any = "leaf"
    for _ in range(6):
        deep = [deep]
    assert prepared(component("a") | {"spec": {"deep": deep}}, rules=rules).items
    told = problems(component("a") | {"spec": {"deep": [deep]}}, rules=rules)
    assert told == {"items[0]": "JSON may be nested 8 deep at most (max_json_depth, by default 64)"}


def test_brackets_side_by_side_or_in_texts_are_not_nested() -> None:
    rules = msgspec.structs.replace(RULES, max_depth=4)
    assert prepared(resource("a", wide=[[]] * 9, text="[{" * 9), rules=rules).items


def test_the_same_content_has_the_same_etag_however_its_root_is_ordered() -> None:
    sent = component("a")
    turned = dict(reversed(sent.items()))
    assert prepared(sent).items == prepared(turned).items
    assert prepared(sent).items[0].etag != prepared(component("a", owner="b")).items[0].etag


def test_the_stored_document_prepares_to_itself() -> None:
    sent = component("a") | {"metadata": {"annotations": {"z": "1"}, "name": " É ", "tags": ["x"]}}
    [item] = prepared(sent).items
    assert prepared(json.loads(item.document)).items == [item]


@pytest.mark.spec("validation.duplicates-are-400")
def test_a_reference_sent_twice_is_refused_with_both_positions() -> None:
    found = problems(component("a"), component("b"), component("A"), resource("a"), component("a"))
    assert list(found) == ["items[2]", "items[4]"]
    assert all("component:default/a" in text and "items[0]" in text for text in found.values())


@pytest.mark.spec("validation.every-mistake-at-once", "validation.json-path-of-each-mistake")
def test_every_mistake_of_every_item_is_told_with_its_path() -> None:
    found = problems(
        component("a"),
        component("b") | {"kind": 7},
        {"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"a": 1}}},
        "text",
    )
    assert set(found) == {
        "items[1].kind",
        "items[2].metadata.name",
        "items[2].metadata.labels.a",
        "items[3]",
    }


def test_what_a_known_kind_lacks_is_a_warning_and_a_status_but_no_refusal() -> None:
    sent = component("a", owner="x/")
    del sent["spec"]["type"]
    push = prepared(sent)
    assert [(warning.path, warning.entity_ref) for warning in push.warnings] == [
        ("items[0].spec.type", "component:default/a"),
        ("items[0].spec.owner", "component:default/a"),
    ]
    status = json.loads(push.items[0].problems or "null")
    for item, warning in zip(status, push.warnings, strict=True):
        assert item["message"].endswith(warning.message)


def test_more_items_than_a_set_may_hold_are_too_large() -> None:
    with pytest.raises(PayloadTooLargeError, match="max_set_items is 2"):
        prepared(
            *(component(name) for name in "abc"), rules=PushRules(RULES.annotator, max_items=2)
        )
