"""What the tests of importers share."""

from tests.no_retry_delay import no_pauses

__all__ = ["no_pauses"]
