"""Which service of one Prometheus an entity's annotations point to."""

from collections.abc import Mapping
from typing import Any, Final

from factbook.integrations.locations import annotations
from factbook.integrations.prometheus.options import PrometheusOptions
from factbook.outbound.outcomes import Missing, Outcome

SERVICE: Final = "prometheus.io/service"
# What people's portals filter alerts by: `service=checkout,env=production`.
LABELS: Final = "prometheus.io/labels"
LONGEST: Final = 200


def target(options: PrometheusOptions, entity: Mapping[str, Any]) -> str | Missing:
    """The value of the service's label, or why there is none.

    It may hold any printable character: it is only ever a quoted text in a query.
    """
    known = annotations(entity)
    found = known.get(SERVICE) or _among(known.get(LABELS), options.label)
    if not isinstance(found, str) or not found.strip():
        return Missing(Outcome.NO_ANNOTATION, "no value of the service's label")
    value = found.strip()
    if len(value) > LONGEST or not value.isprintable():
        return Missing(Outcome.NO_ANNOTATION, "what the annotation holds is no value of a label")
    return value


def _among(labels: Any, name: str) -> str:
    """The value of one label of a list of them with commas."""
    pairs = labels.split(",") if isinstance(labels, str) else []
    parts = (pair.partition("=") for pair in pairs)
    return next((value.strip() for key, _, value in parts if key.strip() == name), "")
