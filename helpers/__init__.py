"""The workshop's helper package: thin enough to read in one sitting, sound enough to take to work."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helpers.broker import KafkaBroker
    from helpers.session import SparkConfigurator, create_spark_session

    from . import broker, envelope, jars, lakehouse, schemas, sinks, sources

__all__ = [
    "KafkaBroker",
    "SparkConfigurator",
    "broker",
    "create_spark_session",
    "envelope",
    "jars",
    "lakehouse",
    "schemas",
    "sinks",
    "sources",
]

_HOMES = {"KafkaBroker": "broker", "SparkConfigurator": "session", "create_spark_session": "session"}


def __getattr__(name: str) -> Any:
    # On first use rather than on import: the broker and the doctor must not wait for pyspark, or need it.
    if name not in __all__:
        raise AttributeError(f"module 'helpers' has no attribute {name!r}; it has {', '.join(__all__)}")
    module = import_module(f"helpers.{_HOMES.get(name, name)}")
    return getattr(module, name) if name in _HOMES else module
