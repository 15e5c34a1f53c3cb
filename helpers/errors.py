"""What can go wrong, as types.

WorkshopError           everything below; its text says what was found and what to do next
├── JavaError           no Java that Spark can use
├── JarsError           the jars are not there and cannot be fetched
├── SessionError        Spark did not start
├── BrokerError         the local Kafka broker did not start
├── LakehouseError      a folder cannot be made or written
└── RunningError        another run holds the lock
"""

from __future__ import annotations

import re


class WorkshopError(Exception):
    """A failure that the user can mend; the text says how."""


class JavaError(WorkshopError):
    """No Java that Spark can use."""


class JarsError(WorkshopError):
    """The jars are not in the cache and cannot be fetched."""


class SessionError(WorkshopError):
    """Spark did not start."""


class BrokerError(WorkshopError):
    """The local Kafka broker did not start."""


class LakehouseError(WorkshopError):
    """A folder of the lakehouse cannot be made or written."""


class RunningError(WorkshopError):
    """Another run holds the lock."""


def root_cause(error: BaseException) -> str:
    """The deepest reason that Java gives, in one line; it lies under pages of stack trace.

    >>> root_cause(ValueError("SparkException: failed\\nCaused by: IOException: No space left on device"))
    'IOException: No space left on device'
    """
    told = f"{error}\n{getattr(error, '_stackTrace', '')}".strip()
    causes = re.findall(r"^Caused by: (.*\S)", told, re.MULTILINE)
    return str(causes[-1] if causes else told.splitlines()[0] if told else type(error).__name__)
