"""What a measure found: for each of its goals the values of the rounds, with their context."""

from statistics import median

import msgspec

_FORMS = {
    "x": "{:.3f} x",
    "µs": "{:.3f} µs",
    "ms": "{:.3f} ms",
    "s": "{:.2f} s",
    "MB": "{:.0f} MB",
    "kB": "{:.1f} kB",
    "%": "{:.2f} %",
    "": "{:.0f}",
}


class Finding(msgspec.Struct):
    """The values of one goal, and beside them what they were made of."""

    values: list[float] = []
    context: dict[str, list[float]] = {}

    @property
    def value(self) -> float:
        """The median over the rounds."""
        return median(self.values)

    def explained(self) -> str:
        """The medians of the context."""
        return ", ".join(
            f"{name} {_short(median(series))}" for name, series in self.context.items()
        )


class Findings(dict[str, Finding]):
    """Findings by the key of their goal."""

    def add(self, key: str, value: float, **context: float) -> None:
        """Add the value of one round."""
        finding = self.setdefault(key, Finding())
        finding.values.append(value)
        for name, number in context.items():
            finding.context.setdefault(name, []).append(number)


def written(value: float, unit: str) -> str:
    """A value with its unit."""
    return _FORMS[unit].format(value)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
