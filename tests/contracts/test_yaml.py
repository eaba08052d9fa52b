"""YAML is read as the npm package reads it with which Backstage reads its catalog files.

What is not compared, because ours refuses it and Backstage stores something that nobody meant:
numbers that JSON has not, tags that the core schema has not, keys that are no scalars, an anchor
that is there twice; nor a carriage return alone, which ends a line in YAML 1.2 and not in the
package; nor the name of an anchor with a colon or a similar mark, before which libyaml ends the
name. Numbers of more than 15 digits stay exact here.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.yaml_answers import Documents, exact, ours, recorded
from tests.contracts.node import HERE, NODE

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

PIECES = st.sampled_from([*"0189.-+eExob:_,a~<=#'/TZ", "07", "on", "yes", "null", "true"])
ODD_ANCHOR = re.compile(r"[&*][0-9A-Za-z_-]+[?:%@`]")
SCALARS = (
    st.lists(PIECES | st.characters(codec="utf-8", exclude_characters="\r\x7f"), max_size=6)
    .map("".join)
    .filter(lambda scalar: not ODD_ANCHOR.search(scalar))
)


class Npm:
    """The npm package in a process that answers one question after another."""

    def __init__(self) -> None:
        assert NODE.exists(), "tests/contracts has no node_modules: make contracts installs them"
        self.process = subprocess.Popen(
            [NODE, HERE / "yaml.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, text: str) -> Documents:
        """The documents in a text, without empty ones; None where it is refused."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        if "refused" in answer:
            return None
        return [each for each in answer["documents"] if each is not None]


@pytest.fixture(scope="module")
def npm() -> Iterator[Npm]:
    """The npm package, asked by every test of this module."""
    asked = Npm()
    yield asked
    asked.process.communicate(timeout=30)


def test_the_recorded_answers_are_those_of_the_package(npm: Npm) -> None:
    answers = recorded()
    assert [(text, npm.ask(text)) for text, _ in answers] == answers


@settings(max_examples=5000, deadline=None)
@given(SCALARS)
def test_a_scalar_that_both_read_is_the_same_to_both(npm: Npm, scalar: str) -> None:
    text = f"value: {scalar}\n"
    mine, theirs = ours(text), npm.ask(text)
    if mine is not None and theirs is not None and len(scalar) <= 15:
        assert exact(mine) == exact(theirs)
