"""The integration as configured for a fake Datadog, and an organization that counts by hand."""

from collections.abc import Iterable
from typing import Any

from factbook.integrations.datadog import INTEGRATION
from factbook.outbound.outcomes import Missing
from tests.fakes.datadog import FakeDatadog, Keys, Monitor, Objective
from tests.integrations.asking import Asking
from tests.service import Time

KEYS = {"api_key": "an_api_key_of_tests", "application_key": "an_application_key_of_tests"}
MONITORS = (
    Monitor(1, ("service:app", "team:one")),
    Monitor(2, ("Service:App", "env:prod", "team:one")),
    Monitor(3, ("service:app-two",)),
    Monitor(4, ("app",)),
    Monitor(5),
)
OBJECTIVES = (
    Objective("a", ("service:app", "env:prod")),
    Objective("b", ("team:one",), ("service:app",)),
    Objective("c", ("SERVICE:APP",), ("service:app",)),
    Objective("d", ("service:app-two",), ()),
)
APP = "service:app service:app"
# What is collected of APP: monitors 1 and 2, objectives a, b and c.
COUNTS = {"observability.monitorCount": 2, "observability.sloCount": 3}


def started(
    monitors: Iterable[Monitor] = MONITORS,
    objectives: Iterable[Objective] = OBJECTIVES,
    *,
    keys: Keys | None = None,
) -> tuple[FakeDatadog, Asking]:
    """A fake that holds these, and the integration that asks it with the keys."""
    time = Time()
    keys = keys or known()
    fake = FakeDatadog(monitors, objectives, keys, clock=time)
    return fake, Asking(INTEGRATION, fake, KEYS, time=time)


def known(*reads: str, limit: int = 1000) -> Keys:
    """The keys that the integration has; they may read everything unless something is named."""
    keys = Keys(KEYS["api_key"], KEYS["application_key"], limit=limit)
    keys.reads = set(reads) or keys.reads
    return keys


def target(annotations: Any, **table: Any) -> str | Missing:
    """The target of a component with these annotations."""
    integration = INTEGRATION.configured("default", KEYS | table)
    metadata = {"name": "app"} | ({} if annotations is None else {"annotations": annotations})
    return integration.target({"kind": "Component", "metadata": metadata})
