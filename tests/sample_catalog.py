"""A small catalog, as somebody would push it: eight components and a location."""

from pathlib import Path
from typing import Any, Final

import yaml

CATALOG: Final = Path(__file__).with_name("data") / "catalog.yaml"


def entities() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(CATALOG.read_text("utf-8")))
