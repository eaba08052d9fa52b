"""What tests of sources are run with."""

from tests.no_retry_delay import no_pauses

__all__ = ["no_pauses"]
