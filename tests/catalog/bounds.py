"""A lower bound of totals, which far fewer entities exceed."""

import pytest

from factbook.catalog.store import totals


def count_up_to(bound: int, patch: pytest.MonkeyPatch) -> None:
    """Count entities up to this bound."""
    having = totals._HAVING.replace(f"LIMIT {totals.MORE}\n", f"LIMIT {bound + 1}\n")
    patch.setattr(totals, "_HAVING", having)
    patch.setattr(totals, "_WINDOW", 5 * bound)
    patch.setattr(totals, "MORE", bound + 1)
    patch.setattr(totals, "BOUND", bound)
