"""Bodies of sources: JSON, YAML and text become values within bounds."""

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.datasources.custom.documents import (
    DEEPEST_DOCUMENT,
    FORMATS,
    LONGEST_BODY,
    MOST_YAML_PARTS,
    UnreadableDocumentError,
    read_body,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@given(JSON)
def test_what_is_json_is_read_as_it_is(value: object) -> None:
    assert read_body(msgspec.json.encode(value), "json") == value


def test_yaml_means_what_json_can_say() -> None:
    expected: dict[bytes, object] = {
        b"a: 1\nb: [x, {c: true}]": {"a": 1, "b": ["x", {"c": True}]},
        b"2026-11-21": "2026-11-21",
        b"when: 2026-11-21T10:00:00Z": {"when": "2026-11-21T10:00:00Z"},
        b"1: one": {"1": "one"},
        b"on: {push: yes}\nat: 12:30:45\nmode: 0755": {
            "on": {"push": "yes"},
            "at": "12:30:45",
            "mode": 755,
        },
        b"": None,
        b"x: .nan": {"x": None},
    }
    assert {text: read_body(text, "yaml") for text in expected} == expected


def test_a_text_is_read_whatever_its_bytes() -> None:
    assert read_body(b"caf\xc3\xa9 \xff", "text") == "café �"


@pytest.mark.slow
def test_what_is_beyond_the_bounds_is_refused_and_never_quoted(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, bytes, str | None]] = [
        ("json", b"{", "not JSON"),
        ("json", b'"\xff"', "not JSON"),
        ("json", b"[" * 100_000, "nested more than 100"),
        (
            "json",
            b"[" * (DEEPEST_DOCUMENT + 1) + b"]" * (DEEPEST_DOCUMENT + 1),
            "nested more than 100",
        ),
        (
            "yaml",
            b"[" * (DEEPEST_DOCUMENT + 1) + b"]" * (DEEPEST_DOCUMENT + 1),
            "nested more than 100",
        ),
        ("yaml", b"a: &x [1]\nb: *x", "alias"),
        ("yaml", b"a: b: c", "not plain YAML, in line 1"),
        ("yaml", b"a: !!python/object/apply:os.system [true]", "not plain YAML"),
        ("yaml", b"--- 1\n--- 2", "not plain YAML"),
        ("yaml", b'a: !!int ""', "not plain YAML, in line 1"),
        ("yaml", b"a: !!bool x", "not plain YAML, in line 1"),
        ("yaml", b"a: " + b"1" * 1_001, "not plain YAML, in line 1"),
        # Numbers of base 60, which are texts in YAML 1.2.
        ("yaml", b"a: " + b"1:" * 300 + b"1.5", None),
        ("yaml", b"a: " + b"1:" * 400_000 + b"1", None),
        ("yaml", b"x: 1e99999999999999999999:6", None),
        ("yaml", b"a" * (LONGEST_BODY["yaml"] + 1), "more than 1024 KiB"),
        ("yaml", b"[" + b"1," * MOST_YAML_PARTS + b"1]", "more than 150000 parts"),
        ("json", b" " * LONGEST_BODY["json"] + b"1", "more than 2048 KiB"),
        ("text", b"a" * (LONGEST_BODY["text"] + 1), "more than 5120 KiB"),
        ("json", b"1" * 5_000, "not JSON"),
    ]
    for format_, body, told in cases:
        with subtests.test(format=format_, body=body):
            if told is None:
                assert read_body(body, "yaml") is not None
                continue
            with pytest.raises(UnreadableDocumentError, match=told) as caught:
                read_body(body, format_)  # type: ignore[arg-type]
            assert "system" not in str(caught.value)


@given(st.binary(max_size=200) | st.text(alphabet="[]{}:&*!-? \n'\"ab0.", max_size=80))
def test_no_body_does_more_than_be_refused(body: bytes | str) -> None:
    data = body if isinstance(body, bytes) else body.encode()
    for format_ in FORMATS:
        with suppress(UnreadableDocumentError):
            assert msgspec.json.encode(read_body(data, format_))
