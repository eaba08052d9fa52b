"""PromQL queries, each for all services, or several of them, at once.

Source: Prometheus' documentation of its query language. While an alert is firing, the rule's
evaluation writes the series `ALERTS{alertstate="firing"}` with the alert's labels.
"""

from collections.abc import Callable, Sequence
from typing import Final

from factbook.integrations.prometheus.options import PrometheusOptions

# A query by the settings, the services and the length of its window in seconds.
Query = Callable[[PrometheusOptions, Sequence[str], int], str]

# More services than fit in here are not named: then the queries are about all.
_LONGEST: Final = 600
_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$")
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def text(value: str) -> str:
    """A value as a quoted string."""
    return f'"{"".join(_ESCAPES.get(character, character) for character in value)}"'


def one_of(label: str, values: Sequence[str]) -> str:
    """Matcher for series whose label has one of the values."""
    alternatives = "|".join(map(_literal, values))
    return f"{label}=~{text(alternatives)}"


def of_services(options: PrometheusOptions, services: Sequence[str]) -> str:
    """Matcher for series of these services; for any service if there are many."""
    matcher = one_of(options.label, services)
    return matcher if len(matcher) <= _LONGEST else f'{options.label}!=""'


def began(options: PrometheusOptions, services: Sequence[str], seconds: int) -> str:
    """Query for the times at which an alert was firing and one step earlier was not."""
    firing, before = _firing(options, services)
    return f"(({firing}) unless ({before}))[{seconds}s:{options.resolution}s]"


def ended(options: PrometheusOptions, services: Sequence[str], seconds: int) -> str:
    """Query for the times at which an alert was not firing and one step earlier was."""
    firing, before = _firing(options, services)
    return f"(({before}) unless ({firing}))[{seconds}s:{options.resolution}s]"


def up(options: PrometheusOptions, services: Sequence[str], seconds: int) -> str:
    """Query for the share of samples with the value up, in percent, by service."""
    window = f"{options.up_metric}{{{of_services(options, services)}}}[{seconds}s]"
    total, samples = (
        f"sum by ({options.label}) ({function}_over_time({window}))"
        for function in ("sum", "count")
    )
    return f"100 * {total} / {samples}"


def anything(options: PrometheusOptions, seconds: int) -> str:
    """Query with a result if the storage has a sample of any series that the queries use."""
    names = one_of("__name__", ("ALERTS", options.up_metric))
    return f"count(count_over_time({{{names}}}[{seconds}s]))"


def _firing(options: PrometheusOptions, services: Sequence[str]) -> tuple[str, str]:
    """Queries for the alerts firing at a time, and one step earlier, merged over other labels.

    Labels differ by instance, and by the replica of the Prometheus that evaluates the rule.
    """
    matchers = ['alertstate="firing"', of_services(options, services)]
    if options.severities:
        matchers.append(one_of(options.severity_label, options.severities))
    alerts = f"ALERTS{{{','.join(matchers)}}}"
    group = f"group by ({options.label}, alertname)"
    return f"{group} ({alerts})", f"{group} ({alerts} offset {options.resolution}s)"


def _literal(value: str) -> str:
    """A value as a pattern that matches nothing else."""
    return "".join(f"\\{one}" if one in _SPECIAL else one for one in value)
