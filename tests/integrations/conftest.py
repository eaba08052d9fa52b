"""What tests of sources are run with."""

from tests.pauses import no_pauses

__all__ = ["no_pauses"]
