"""Strict validation, references, locations and URLs agree with the npm package that defines them.

FACTBOOK_SOAK=1 asks twenty times as many questions. What is not compared, and why:

- Templates, whose form is in another npm package (tests/catalog/test_strict.py has them);
- hosts of URLs in scripts from right to left and in letters newer than this Python: `new URL`
  has Unicode's tables for domains at hand, ours looks at the categories of characters.
"""

import json
import os
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from factbook.catalog import ref as refs
from factbook.catalog import validation
from factbook.catalog.ref import EntityRef
from factbook.errors import InputError
from tests.contracts.entities import GONE, URLS, changed, entities, places_of, put
from tests.contracts.node import HERE, NODE

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

SOAK = 20 if os.environ.get("FACTBOOK_SOAK") else 1
LONGEST_REFERENCE = 640

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=5)
REFERENCES = st.lists(st.sampled_from([":", "/", "a", "B c", " "]) | WORDS, max_size=6).map("".join)
PARTS = WORDS | st.text(
    st.sampled_from("aA\u03a3\u03c3\u03c2\u0130\u0131\u1e9e\u01c5\u212a\u00c9e\u0301 .'"),
    max_size=6,
)
SPACE = " \t\r\n\x00\x1f\xa0\u2003\ufeff"
LOCATIONS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["url:", "http:", "https:", " file :", "x", ":", "", "url"]) | WORDS,
        st.text(SPACE, max_size=2),
        st.sampled_from(["https://a/b", "javascript:x", "Java\nScript\t:", "java\u017fcript:", ""])
        | WORDS,
    ),
)


class CatalogModel:
    """The npm package in a process that answers one question after another."""

    def __init__(self) -> None:
        assert NODE.exists(), "tests/contracts has no node_modules: make contracts installs them"
        self.process = subprocess.Popen(
            [NODE, HERE / "catalog-model.mjs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **question: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def stop(self) -> None:
        self.process.communicate(timeout=30)


@pytest.fixture(scope="module")
def npm() -> Iterator[CatalogModel]:
    """The npm package, asked by every test of this module."""
    process = CatalogModel()
    yield process
    process.stop()


def assert_same_verdict(npm: CatalogModel, entity: Any) -> bool:
    """Whether both say that it is valid."""
    theirs, ours = npm.ask(entity=entity), list(validation.find_strict_problems(entity))
    assert (ours == []) == ("valid" in theirs), {"theirs": theirs, "ours": ours, "entity": entity}
    return not ours


@settings(max_examples=500 * SOAK, deadline=None)
@given(entities())
def test_a_valid_entity_of_any_known_kind_is_valid_for_both(
    npm: CatalogModel, entity: dict[str, Any]
) -> None:
    assert assert_same_verdict(npm, entity)


@settings(max_examples=2500 * SOAK, deadline=None)
@given(entities().flatmap(changed))
def test_an_entity_with_something_odd_in_it_gets_the_same_verdict(
    npm: CatalogModel, entity: Any
) -> None:
    assert_same_verdict(npm, entity)


@pytest.mark.parametrize("entity", [None, 1, "text", True, [], {}, [{}], {"metadata": None}])
def test_what_is_no_entity_is_none_for_both(npm: CatalogModel, entity: Any) -> None:
    assert not assert_same_verdict(npm, entity)


def test_real_entities_and_all_that_lack_one_member_get_the_same_verdicts(
    npm: CatalogModel, test_data: Path
) -> None:
    verdicts = []
    for file in sorted(test_data.glob("catalogs/*.yaml")):
        for entity in filter(None, yaml.safe_load_all(file.read_text())):
            verdicts.append(assert_same_verdict(npm, entity))
            for path in places_of(entity):
                assert_same_verdict(npm, put(entity, path, GONE))
    assert len(verdicts) > 20


@settings(max_examples=2500 * SOAK, deadline=None)
@given(REFERENCES, st.sampled_from([None, "", "Group"]), st.sampled_from(["", "Space"]))
def test_a_text_means_the_same_reference_to_both(
    npm: CatalogModel, text: str, kind: str | None, namespace: str
) -> None:
    defaults = {"defaultKind": kind, "defaultNamespace": namespace}
    parts = npm.ask(text=text, defaults=defaults)
    expected = None if "refused" in parts else canonical(npm, parts)
    try:
        found = str(refs.parse_ref(text, kind=kind, namespace=namespace or "default"))
    except InputError:
        found = None
    assert found == expected, parts


def canonical(npm: CatalogModel, parts: dict[str, str]) -> str | None:
    """What npm makes of the parts, but for three differences, because pushed names may hold more.

    Blanks around a part are no part of it, Unicode's composed form is the one that counts, and
    what no entity can be called (unprintable, too long) is refused at once.
    """
    composed = {key: unicodedata.normalize("NFC", part.strip()) for key, part in parts.items()}
    if not all(part and part.isprintable() for part in composed.values()):
        return None
    if sum(map(len, composed.values())) > LONGEST_REFERENCE:
        return None
    return unicodedata.normalize("NFC", str(npm.ask(parts=composed)["reference"]))


@settings(max_examples=1000 * SOAK, deadline=None)
@given(PARTS, PARTS, PARTS)
def test_parts_have_the_same_canonical_form(
    npm: CatalogModel, kind: str, namespace: str, name: str
) -> None:
    parts = {"kind": kind, "namespace": namespace, "name": name}
    composed = {key: unicodedata.normalize("NFC", part) for key, part in parts.items()}
    theirs = unicodedata.normalize("NFC", npm.ask(parts=composed)["reference"])
    assert str(EntityRef.of(kind, namespace, name)) == theirs


@settings(max_examples=1000 * SOAK, deadline=None)
@given(LOCATIONS)
def test_a_text_means_the_same_location_to_both(npm: CatalogModel, text: str) -> None:
    theirs = npm.ask(location=text)
    try:
        ours = validation.parse_location(text)._asdict()
    except InputError:
        ours = None
    assert ours == (None if "refused" in theirs else theirs)


@settings(max_examples=2500 * SOAK, deadline=None)
@given(URLS)
def test_a_text_is_a_url_to_both_or_to_none(npm: CatalogModel, text: str) -> None:
    assert validation.is_absolute_url(text) == ("valid" in npm.ask(url=text))
