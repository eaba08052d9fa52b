"""Every target, and every parser that needs none."""

from typing import Final

from tests.fuzz import (
    checks,
    connections,
    documents,
    headers,
    importers,
    pictures,
    provisioning,
    requests,
    services,
    texts,
    vendors,
)
from tests.fuzz.target import Target, named

TARGETS: Final[dict[str, Target]] = named(
    [
        *texts.TARGETS,
        *headers.TARGETS,
        *documents.TARGETS,
        *services.TARGETS,
        *pictures.TARGETS,
        *vendors.TARGETS,
        *requests.TARGETS,
        *connections.TARGETS,
        *importers.TARGETS,
        *provisioning.TARGETS,
        *checks.TARGETS,
    ]
)
