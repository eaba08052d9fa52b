"""What a search can take is known from its pattern, compared with every way that is tried."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factbook.checks.patterns import search_time
from factbook.errors import InputError

Tree = tuple[Any, ...]

_LEAVES = st.sampled_from([("a",), ("b",), (".",), ("[ab]",), ("c",)])


def _nodes(parts: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.tuples(st.just("then"), parts, parts),
        st.tuples(st.just("or"), parts, parts),
        st.tuples(st.sampled_from("?*+"), parts),
    )


TREES = st.recursive(_LEAVES, _nodes, max_leaves=8)


def written(tree: Tree) -> str:
    match tree:
        case ("then", before, after):
            return written(before) + written(after)
        case ("or", one, other):
            return f"(?:{written(one)}|{written(other)})"
        case (("?" | "*" | "+") as sign, part):
            return f"(?:{written(part)}){sign}"
    return str(tree[0])


def ends(tree: Tree, text: str, start: int) -> Iterator[int]:
    """Every place to which a part can be read from a place, once for each way that is tried."""
    match tree:
        case ("then", before, after):
            for middle in ends(before, text, start):
                yield from ends(after, text, middle)
        case ("or", one, other):
            yield from ends(one, text, start)
            yield from ends(other, text, start)
        case ("?", part):
            yield from ends(part, text, start)
            yield start
        case (("*" | "+") as sign, part):
            for middle in ends(part, text, start):
                yield middle
                yield from ends(("+", part), text, middle)
            if sign == "*":
                yield start
        case (characters,):
            if start < len(text) and (characters == "." or text[start] in characters.strip("[]")):
                yield start + 1


def ways(tree: Tree, text: str, most: int) -> int:
    """The ways to read any part of a text; counts no further than `most`."""
    found = 0
    for start in range(len(text) + 1):
        for _ in ends(tree, text, start):
            found += 1
            if found > most:
                return found
    return found


@pytest.mark.slow
@settings(max_examples=300)
@given(TREES, st.sampled_from(["a", "b", "ab", "aab", "abc"]), st.integers(0, 4))
def test_no_text_takes_more_ways_than_the_pattern_promises(tree: Tree, part: str, n: int) -> None:
    try:
        growth = search_time.growth(written(tree))
    except InputError:
        return
    text = part * 3 * n
    # Entry and exit of each loop shift by the length of the pattern at most.
    bound = growth.ways * (len(text) + len(written(tree))) ** (growth.degree + 1)

    assert ways(tree, text, bound) <= bound


def test_a_pattern_that_could_take_forever_is_refused(subtests: pytest.Subtests) -> None:
    texts = [
        "^(a|a)+$",
        "^(a|a?)+$",
        "(a+)+$",
        "(a*)*b",
        "(a|aa)+$",
        r"(\w+\s?)+!$",
        "(.*a){25}$",
        "^(a|a)+(a|a)+(a|a)+N$",
        "(a?){25}a{25}",
        "a?" * 25 + "a" * 25,
        "(a|a)" * 30,
        "(|)" * 40 + "x",
        "a*" * 30,
        ".*a.*b.*c",
        "([a-z]+)*",
        "((?=a+)a+)+",
        r"([[:alpha:]]+\w?)+",
        r"(\p{L}+\w?)+",
        "(?i)(k+\u212a?)+",
    ]
    for text in texts:
        with subtests.test(text=text), pytest.raises(InputError, match="could take forever"):
            search_time.longest_text(text)


def test_what_has_no_bound_is_refused_with_its_place(subtests: pytest.Subtests) -> None:
    cases = [
        (r"(a)\1", "do not take"),
        ("(?R)?a", "do not take"),
        ("(?:cat){e<=1}", "do not take"),
        (r"(?P<n>a)(?P=n)", "do not take"),
        (r"(?x) a # b", "do not take"),
        (r"\R", "do not take"),
        ("(?:" + "a" * 40 + ")+", "repeats a part of more than 32 characters"),
        ("".join(f"({one})?" for one in "abcdefgh" * 20), "too many parts"),
        ("".join(f"{one}+" for one in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP"), "40 repeats"),
    ]
    for text, words in cases:
        with subtests.test(text=text), pytest.raises(InputError, match=words):
            search_time.longest_text(text)


def test_usual_patterns_are_tried_with_texts_of_two_thousand_characters(
    subtests: pytest.Subtests,
) -> None:
    texts = [
        "",
        "^a",
        "[0-9]+",
        r"^v?\d+(\.\d+){0,2}(-[\w.]+)?$",
        "^[a-z0-9]+(-[a-z0-9]+)*$",
        r"^https?://[\w.-]+(:\d+)?(/[\w./-]*)?(\?.*)?(#.*)?$",
        r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$",
        r"^refs/heads/(main|master|release/.+)$",
        r"^.*\.(ya?ml|json)$",
        "^(?!test-)[a-z]+",
        r"(?i)\bsecret\b|(?s:a.b)",
        r"^(?P<major>\d+)\.(?<minor>\d++)(?>a*?)\Z",
        r"[]\]^-]x{2,}[\p{Lu}\x41]$",
        "^(" + "|".join(f"team-{i}" for i in range(80)) + ")$",
    ]
    for text in texts:
        with subtests.test(text=text):
            assert search_time.longest_text(text) >= 2_000


def test_repeats_that_compete_are_tried_with_shorter_texts() -> None:
    assert search_time.longest_text("foo") > search_time.longest_text("f.*o.*o") >= 63
