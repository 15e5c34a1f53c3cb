"""Figures as JSON: `make bench`, or `make bench NAME=session` for one.

Machines are noisy, so what is compared is measured in turns within one run, and the median counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS = 5


def _seconds(statements: str) -> float:
    """How long these statements take in a fresh Python."""
    timed = f"import time; began = time.perf_counter()\n{statements}\nprint(time.perf_counter() - began)"
    done = subprocess.run([sys.executable, "-c", timed], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return float(done.stdout)


def session() -> dict[str, Any]:
    """From nothing to a session that is ready, warm jars, against pyspark's own."""
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare.append(_seconds("from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate()"))
        ours.append(_seconds("from helpers import create_spark_session; create_spark_session()"))
    return {
        "bare_seconds": round(median(bare), 2),
        "ours_seconds": round(median(ours), 2),
        "ratio": round(median(ours) / median(bare), 2),
        "at_most": 1.5,
    }


def broker() -> dict[str, Any]:
    """From nothing to a broker that answers."""
    from helpers import KafkaBroker

    def start() -> float:
        began = time.perf_counter()
        with KafkaBroker():
            return time.perf_counter() - began

    return {"ready_seconds": round(median(start() for _ in range(ROUNDS)), 2)}


def noop() -> dict[str, Any]:
    """An availableNow run that finds nothing new, on a checkpoint of 20 batches."""
    from data_generator import landing, world
    from helpers import create_spark_session, envelope, lakehouse, schemas, sinks, sources

    spark = create_spark_session("bench")

    def run() -> tuple[sinks.Written, float]:
        began = time.perf_counter()
        orders = sources.landing(spark, "order").transform(envelope.open_envelope(schemas.ORDER))
        return sinks.append(orders, "bronze.order", checkpoint="bronze.order"), time.perf_counter() - began

    for batch in range(20):
        landing.land(lakehouse.root(), "order", str(batch), list(world.orders(7, batch + 1, 1)))
        assert run()[0].rows == 1
    idle = [run() for _ in range(ROUNDS)]
    assert all(written.rows == 0 for written, _ in idle)
    batches = len(list((lakehouse.files("checkpoints", "bronze.order") / "commits").glob("[0-9]*")))
    return {"batches_in_checkpoint": batches, "noop_seconds": round(median(seconds for _, seconds in idle), 2)}


BENCHES: dict[str, Callable[[], dict[str, Any]]] = {"session": session, "broker": broker, "noop": noop}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"error: no bench is called {unknown[0]}; there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    figures = {}
    for name in names or list(BENCHES):
        print(f"bench: {name} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["LAKEHOUSE"] = str(Path(folder, "lakehouse"))
            figures[name] = BENCHES[name]()
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
