"""Everything the mission asks for, as data: an id, where it is written, and what it says.

A test that shows a requirement carries `@pytest.mark.spec("its.id")`. `test_manifest.py` holds
the two together, and `python -m tests.spec` prints which test shows what.
"""

from . import access, catalog, endpoint, facts, operations, push, tools
from .requirement import Requirement

__all__ = ["REQUIREMENTS", "TOPICS", "Requirement"]

TOPICS: dict[str, dict[str, Requirement]] = {
    "catalog": catalog.REQUIREMENTS,
    "push": push.REQUIREMENTS,
    "endpoint": endpoint.REQUIREMENTS,
    "tools": tools.REQUIREMENTS,
    "facts": facts.REQUIREMENTS,
    "access": access.REQUIREMENTS,
    "operations": operations.REQUIREMENTS,
}

REQUIREMENTS: dict[str, Requirement] = {
    requirement_id: requirement
    for topic in TOPICS.values()
    for requirement_id, requirement in topic.items()
}
