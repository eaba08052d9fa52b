"""Metrics of the importers, the same in every process."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from factbook.clock import SECOND
from factbook.importers.status import ImporterStatus

_Value = Callable[[ImporterStatus], float | None]

STATES: Final = ("complete", "partial", "held", "failed")


def of_importers(statuses: Sequence[ImporterStatus]) -> Iterator[Metric]:
    """State of each importer. Alerts rely on the times."""
    for name, about, value in _GAUGES:
        gauge = GaugeMetricFamily(f"factbook_importer_{name}", about, labels=("importer",))
        for one in statuses:
            if (number := value(one)) is not None:
                gauge.add_metric((one.importer.id,), number)
        if gauge.samples:
            yield gauge
    states = GaugeMetricFamily(
        "factbook_importer_state",
        "1 for the state in which the last run of the importer ended.",
        labels=("importer", "state"),
    )
    for one in statuses:
        for state in STATES if one.last else ():
            assert one.last is not None
            states.add_metric((one.importer.id, state), float(state == one.last.state))
    if states.samples:
        yield states


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / SECOND


_GAUGES: Final[tuple[tuple[str, str, _Value], ...]] = (
    (
        "last_complete_timestamp_seconds",
        "When everything was last read; 0: never.",
        lambda one: (one.complete_at or 0) / SECOND if one.last else None,
    ),
    (
        "interval_seconds",
        "How far apart the runs of the importer are.",
        lambda one: _seconds(one.importer.every),
    ),
    ("problems", "Problems of the last reading.", lambda one: one.problems if one.last else None),
    (
        "held",
        "Removals that wait for a decision.",
        lambda one: one.held if one.last else None,
    ),
    (
        "failures",
        "Runs in a row, the last one included, that did not read everything.",
        lambda one: one.last and one.last.failures,
    ),
    ("last_run_calls", "Calls that the last run made.", lambda one: one.last and one.last.calls),
    (
        "rate_limit_remaining",
        "Calls that the account's tightest limit still allowed at the end of the last run.",
        lambda one: one.last and one.last.calls_left,
    ),
)
