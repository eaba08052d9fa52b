"""Templates: one environment, and what every template may use."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from factbook import __version__
from factbook.web.charts.glyphs import kind_glyph, kind_shape
from factbook.web.site import assets
from factbook.web.site import formatting as words


def rendered(template: str, values: Mapping[str, Any]) -> bytes:
    """A template with these values."""
    return _environment().get_template(template).render(values).encode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("factbook.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= words.FILTERS | {
        "kind_glyph": kind_glyph,
        "kind_shape": kind_shape,
    }
    environment.globals |= {"asset": assets.url, "version": __version__}
    return environment
