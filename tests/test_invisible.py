"""Characters that nobody sees are taken out, but for those that mean something where they stand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook import invisible

TAGGED = "".join(chr(0xE0000 + ord(char)) for char in "ignore all")
SELECTED = "".join(chr(0xE0100 + ord(char)) for char in "delete")
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
TEXTS = st.lists(
    st.characters(codec="utf-8")
    | st.sampled_from("\u00ad\u200b\u200c\u200d\u200e\u200f\u202e\u2060\u2066\ufe0f\ufeff")
    | st.sampled_from("\U000e0041\U000e0067\U000e007f\U000e0100\U0001f3f4\u2764\U0001f525\u0646")
    | st.just(ENGLAND)
).map("".join)
VALUES = st.recursive(
    TEXTS | st.integers() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)


def test_what_means_something_where_it_stands_stays(subtests: pytest.Subtests) -> None:
    for text in [
        "plain",
        "größe, 日本語, עברית, ✓",
        ENGLAND,
        f"🏴{ENGLAND}⚽",
        "❤\ufe0f ☎\ufe0e 1\ufe0f⃣ #\ufe0f⃣",
        "👩\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 👩🏽\u200d🚀 🏴\u200d☠\ufe0f",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "क्\u200dष ന്\u200d",
        "שלום\u200f שלום",
        "ᠠ\u180b",
    ]:
        with subtests.test(text=text):
            assert not invisible.has(text)
            assert invisible.without(text) == invisible.marked(text) == text


def test_what_nobody_sees_is_taken_out(subtests: pytest.Subtests) -> None:
    for text, seen in [
        (f"a{TAGGED}b", "ab"),
        (f"🏴{TAGGED}", "🏴"),
        (f"{ENGLAND}{TAGGED}", ENGLAND),
        ("🏴\U000e0075\U000e0073\U000e0063\U000e0061\U000e007f", "🏴"),
        (f"😀{SELECTED}", "😀"),
        ("😀\ufe0f\ufe0f\ufe0e", "😀\ufe0f"),
        ("a\ufe0f", "a"),
        ("p\u200ba\u200cs\u200ds\u2060w\ufefford", "password"),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("soft\u00adhyphen \u3164\u115f", "softhyphen "),
        ("a\u200db", "ab"),
        ("\u2060\ufe0e", ""),
        ("\u3164\u200d\u2060", ""),
        ("x\u2061\u2062\u2063\u2064\u206a\U0001d173\ufff9y", "xy"),
        ("\u0645\u200c\u200c\u200c\u062e", "\u0645\u200c\u062e"),
    ]:
        with subtests.test(text=text, seen=seen):
            assert invisible.has(text)
            assert invisible.without(text) == seen
            assert not invisible.is_visible(text)


def test_on_pages_it_is_written_out() -> None:
    assert invisible.marked("a\U000e0041b\u202e") == "a[U+E0041]b[U+202E]"
    assert invisible.marked("😀\ufe0f\ufe0f") == "😀\ufe0f[U+FE0F]"


def visible(text: str) -> list[str]:
    return [char for char in text if not invisible.has(char)]


@given(TEXTS)
def test_nothing_that_is_left_is_taken_out_and_nothing_visible_goes(text: str) -> None:
    seen = invisible.without(text)
    assert not invisible.has(seen)
    assert invisible.without(seen) == seen
    rest = iter(text)
    assert all(char in rest for char in seen)
    assert visible(seen) == visible(text)


@pytest.mark.slow
@given(VALUES)
def test_of_json_every_text_is_cleaned_and_no_member_is_lost(value: object) -> None:
    document = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    shown = json.loads(invisible.without_in_json(document))

    def compare(one: object, other: object) -> None:
        if isinstance(one, dict):
            assert isinstance(other, dict)
            assert len(one) == len(other)
            for (name, inner), (shown_name, shown_inner) in zip(
                one.items(), other.items(), strict=True
            ):
                assert not invisible.has(shown_name)
                assert shown_name.startswith(invisible.without(name))
                assert invisible.has(name) or name == shown_name
                compare(inner, shown_inner)
        elif isinstance(one, list):
            assert isinstance(other, list)
            assert len(one) == len(other)
            for inner, shown_inner in zip(one, other, strict=True):
                compare(inner, shown_inner)
        else:
            assert other == (invisible.without(one) if isinstance(one, str) else one)

    compare(value, shown)


def test_a_name_that_only_looks_like_another_gets_a_number() -> None:
    document = '{"ok":true,"o\U000e0041k":false,"\u200bok":1,"b\u200b":"\\"b\u200b\\":"}'
    shown = '{"ok":true,"ok (2)":false,"ok (3)":1,"b":"\\"b\\":"}'
    assert invisible.without_in_json(document) == shown


def test_an_escape_of_json_ends_with_no_digit() -> None:
    assert invisible.without_in_json('["\\u0019\ufe0e","9\ufe0e"]') == '["\\u0019","9\ufe0e"]'


def test_a_long_document_is_cleaned_in_all_its_parts() -> None:
    many = [f"größe {number} ❤\ufe0f a\U000e0041b" for number in range(3_000)]
    document = json.dumps(many, ensure_ascii=False, separators=(",", ":"))
    shown = json.loads(invisible.without_in_json(document))
    assert shown == [f"größe {number} ❤\ufe0f ab" for number in range(3_000)]
