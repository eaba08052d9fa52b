"""A lower bound of totals, which far fewer entities exceed."""

import pytest

from factbook.catalog.store import entity_query


def count_up_to(bound: int, patch: pytest.MonkeyPatch) -> None:
    """Count entities up to this bound."""
    having = entity_query._HAVING.replace(
        f"LIMIT {entity_query.MORE_THAN_BOUND}\n", f"LIMIT {bound + 1}\n"
    )
    patch.setattr(entity_query, "_HAVING", having)
    patch.setattr(entity_query, "_WINDOW", 5 * bound)
    patch.setattr(entity_query, "MORE_THAN_BOUND", bound + 1)
    patch.setattr(entity_query, "COUNT_BOUND", bound)
