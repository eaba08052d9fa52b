"""x"""

from dataclasses import replace
from typing import Any
import pytest
from factbook.clock import DAY, HOUR
from factbook.sources.github import FACTS
from factbook.sources.integration import Collected
from tests.fakes.github.state import Issue, Pull, Repository, Ruleset, Token
from tests.service import NOON
from tests.sources.github.asking import APP, EVERYTHING, TOKEN, full, started
from collections import Counter
from factbook.clock import DAY, HOUR, MINUTE
from factbook.sources.github.client import BATCH
from tests.fakes import faults
from tests.fakes.faults import Fault
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.faults import of_another_form, secondary_limit
from tests.fakes.github.state import Pull, Repository, Token
from tests.sources.github.asking import APP, EVERYTHING, TOKEN, Collector, full, started

NAMES = {fact.name for fact in FACTS}


def differences(collected: Collected) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that a full collection would not have, and the words of all reasons."""
    covered = set(collected.values) | {
        name
        for name in NAMES
        if any(name == place or name.startswith(f"{place}.") for place in collected.missing)
    }
    assert covered == NAMES, NAMES - covered
    values = {
        name: value
        for name, value in collected.values.items()
        if name not in EVERYTHING or EVERYTHING[name] != value
    }
    return values, {place: text.split(":")[0] for place, text in collected.reasons.items()}
