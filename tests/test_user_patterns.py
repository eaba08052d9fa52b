"""Patterns that users write: what RE2 takes, and what is written in place of the rest."""

import pytest

from factbook import user_patterns
from factbook.errors import InputError


def test_a_pattern_that_re2_lacks_is_refused_with_what_to_write(
    subtests: pytest.Subtests,
) -> None:
    cases = [
        ("^(?!test-)[a-z]+", "write a second condition, under `not`"),
        ("(?<=v)1", "write a second condition"),
        ("(?>a*)b", "write (?:…)"),
        (r"\d++", "has ++, a possessive repeat that RE2 doesn't take; write +"),
        ("a{2}+", "write {2}"),
        (r"a\Z", r"write \z"),
        (r"caf\u00e9", r"write \x{e9}"),
        (r"caf[\u00e9\U0001f600]", r"write \x{e9}"),
        ("a{1001}", "repeats more than 1,000 times"),
        ("(a{100}){100}", "invalid repetition size"),
        (r"(a)\1", "compare two facts, or write out the alternatives"),
        ("(?P<n>a)(?P=n)", "write out the alternatives"),
        ("(?x) a # b", "takes the flags i, m and s"),
        ("(?#comment)a", "leave it out"),
        ("a{,5}", "write {0,5}"),
        ("(?:cat){e<=1}", "matches approximately"),
        (r"\p{Letter}", r"write a category such as \p{L}"),
        (r"\h", r"write [ \t]"),
        (r"[\b]", r"write \x08"),
        (r"\N{BULLET}", "write the character itself"),
        ("(a", "is not a regular expression: missing )"),
        (r"(.{1,1000}){1,1000}", "invalid repetition size"),
        (r"(?:\p{L}{1,100}){1,9}", "is too large"),
        ("a" * 1_001, "is longer than 1000 characters"),
        ("\ud800", "has a character that is no text"),
    ]
    for text, words in cases:
        with subtests.test(text=text), pytest.raises(InputError) as refused:
            user_patterns.compile_pattern(text)
        with subtests.test(text=text, words=words):
            assert words in refused.value.message


def test_a_usual_pattern_is_tried_with_texts_of_five_thousand_characters(
    subtests: pytest.Subtests,
) -> None:
    texts = [
        "^a",
        "(a+)+$",
        "^(a|a?)+$",
        r"^v?\d+(\.\d+){0,2}(-[\w.]+)?$",
        r"^https?://[\w.-]+(:\d+)?(/[\w./-]*)?(\?.*)?(#.*)?$",
        r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$",
        r"^refs/heads/(main|master|release/.+)$",
        r"(?i)\bsecret\b|(?s:a.b)",
        r"^(?P<major>\d+)\.(?<minor>\d+)\z",
        r"[]\]^-]x{2,}[(?=]\(?=a",
        "^(" + "|".join(f"team-{number}" for number in range(80)) + ")$",
    ]
    for text in texts:
        with subtests.test(text=text):
            assert user_patterns.compile_pattern(text).longest == 5_000


def test_no_search_takes_more_steps_than_it_may(subtests: pytest.Subtests) -> None:
    for text in ("[ab]*a[ab]{900}c", r"\p{L}+", "x" * 1_000):
        with subtests.test(text=text):
            pattern = user_patterns.compile_pattern(text)
            assert 63 <= pattern.longest < 5_000
            assert pattern.size * pattern.longest <= user_patterns.MOST_STEPS


def test_a_pattern_matches_lines_as_before() -> None:
    pattern = user_patterns.compile_pattern("^b$")
    assert pattern.occurs(b"a\nb\nc")
    assert not user_patterns.compile_whole("b").is_whole("a\nb")


def test_what_re2_reads_differently_is_explained() -> None:
    found = {
        text: list(user_patterns.explain_differences(text))
        for text in (r"[\d-]\W", r"\\d", "a(?i)b", "[[:alpha:]]", "a.c$")
    }
    assert found == {
        r"[\d-]\W": [
            r"\d knows ASCII only; for other scripts write \p{Nd}",
            r"\W knows ASCII only; for other scripts write [^\p{L}\p{M}\p{N}_]",
        ],
        r"\\d": [],
        "a(?i)b": [
            "(?i) holds from where it stands; write it first to have it hold everywhere",
            "(?i) no longer takes i for the dotted and dotless i of Turkish",
        ],
        "[[:alpha:]]": ["[:alpha:] knows ASCII only"],
        "a.c$": [],
    }
