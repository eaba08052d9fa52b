"""Translation of PostgreSQL errors to errors for clients.

The codes are those of "PostgreSQL Error Codes", appendix A of its documentation.
"""

from typing import Final

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from factbook.errors import InputError, UnavailableError

# Nothing was done, and the same may succeed a moment later: two transactions stood in each
# other's way, and PostgreSQL ended this one so that the other could go on; or both were about to
# insert the same row, and this one will see that of the other; or another server has become the
# primary.
AGAIN: Final = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.UniqueViolation,
    errors.ReadOnlySqlTransaction,
)

# The database, its machine or its operator does not let us. Operational are, among others, a lost
# connection, a wait for one, too many connections, a shutdown, a full disk, lack of memory, and a
# lock that was held for too long.
REFUSED: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,  # a primary that has become a replica
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
    errors.InsufficientPrivilege,
    errors.DataCorrupted,
    errors.IndexCorrupted,
)

_READ_ONLY = "The database takes no writes at the moment, reads only; nothing was written."
_LOCKED = "Others hold what this waits for in the database; nothing was done. Try again."
_FULL = "The database has no room left; nothing was written."
_BUSY = "Too many others write the same at this moment; nothing was written. Try again."


def is_lost(error: psycopg.Error) -> bool:
    """Return true if the connection is lost, as after a restart, so that another may work."""
    if isinstance(error, PoolTimeout):
        return False
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        code = error.sqlstate
        return code is None or code.startswith(("08", "57P"))
    return False


def unavailable(cause: psycopg.Error) -> UnavailableError:
    """The error for clients; the log has the cause."""
    match cause:
        case errors.ReadOnlySqlTransaction():
            return UnavailableError(_READ_ONLY)
        case errors.LockNotAvailable():
            return UnavailableError(_LOCKED)
        case errors.DiskFull():
            return UnavailableError(_FULL)
        case errors.DeadlockDetected() | errors.SerializationFailure():
            return UnavailableError(_BUSY)
    return UnavailableError()


def data_error(error: psycopg.DataError) -> Exception:
    """The error for a client's text that cannot be stored; any other is a bug in our SQL."""
    if error.sqlstate is None and "NUL" in str(error):
        return InputError("Text with the character NUL cannot be stored or found.")
    return error
