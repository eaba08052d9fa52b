"""Annotations that the service adds to a pushed entity."""

import re
from dataclasses import dataclass
from urllib.parse import quote

MANAGED_BY_LOCATION = "backstage.io/managed-by-location"
MANAGED_BY_ORIGIN_LOCATION = "backstage.io/managed-by-origin-location"

_PLAIN = re.compile(r"[a-z0-9._/:-]*")


@dataclass(frozen=True)
class Annotator:
    """Writer of the service's annotations, with the configured keys."""

    word: str
    domain: str

    @property
    def base_path(self) -> str:
        """The path of the push interface."""
        return f"/api/catalog/{self.word}-entities"

    def annotate(self, annotations: dict[str, str], ref: str, set_name: str | None) -> None:
        """Add the service's annotations, replacing client values under the same keys."""
        entities = f"{self.word}-api:{self.base_path}/entities"
        # Taken out first, so that an entity that was read and comes back keeps its order and etag.
        for key in self._keys:
            annotations.pop(key, None)
        if set_name is not None:
            annotations[self._entity_set] = set_name
        annotations[MANAGED_BY_LOCATION] = f"{entities}/by-ref/{path_segment(ref)}"
        annotations[MANAGED_BY_ORIGIN_LOCATION] = entities

    def count(self, annotations: dict[str, str]) -> int:
        """Count the annotations that are the service's own."""
        return sum(key in annotations for key in self._keys)

    @property
    def _entity_set(self) -> str:
        return f"{self.domain}/entity-set"

    @property
    def _keys(self) -> tuple[str, str, str]:
        return (self._entity_set, MANAGED_BY_LOCATION, MANAGED_BY_ORIGIN_LOCATION)


def path_segment(ref: str) -> str:
    """Percent-encode the reference as one path segment."""
    if _PLAIN.fullmatch(ref):
        return ref.replace(":", "%3A").replace("/", "%2F")
    return quote(ref, safe="")
