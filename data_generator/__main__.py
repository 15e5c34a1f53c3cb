"""Lands McMillan's next orders as files, and their scan events as files or on a topic.

python -m data_generator --orders 20 --seed 7
python -m data_generator --orders 5 --kafka 127.0.0.1:9092
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from data_generator import landing, world

SCANS = "shipment_scan_event"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m data_generator", description="McMillan's data, made to order.")
    parser.add_argument("--orders", type=int, default=20, help="how many more orders to land (20)")
    parser.add_argument("--seed", type=int, default=7, help="which world (7)")
    parser.add_argument(
        "--kafka",
        default=os.environ.get("KAFKA_BOOTSTRAP_SERVERS"),
        metavar="HOST:PORT",
        help="send scan events to this broker (KAFKA_BOOTSTRAP_SERVERS); without one they land as files",
    )
    default = Path(os.environ.get("LAKEHOUSE") or Path(__file__).resolve().parents[1] / "lakehouse")
    parser.add_argument("--lakehouse", type=Path, default=default, help="where to land (LAKEHOUSE, or ./lakehouse)")
    parser.add_argument("--if-empty", action="store_true", help="do nothing where something has landed already")
    options = parser.parse_args()
    if options.orders < 1:
        parser.error(f"--orders is {options.orders}; it must be 1 or more")
    manifest = landing.Manifest.of(options.lakehouse)
    if options.if_empty and manifest.orders:
        print(f"{manifest.orders} orders have landed before; nothing added")
        return 0
    try:
        _land_next(options, manifest)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _land_next(options: argparse.Namespace, manifest: landing.Manifest) -> None:
    first = manifest.orders + 1
    orders = list(world.orders(options.seed, first, options.orders))
    name = f"{options.seed}_{first:08d}"
    manifest.count("order", len(orders), landing.land(options.lakehouse, "order", name, orders))
    shipments = [world.scan_events(options.seed, number) for number in range(first, first + len(orders))]
    events = [event for shipment in shipments for event in shipment]
    if options.kafka:
        landing.send(options.kafka, SCANS, [(shipment[0]["ShipmentId"], shipment) for shipment in shipments])
        manifest.count(SCANS, len(events))
    else:
        manifest.count(SCANS, len(events), landing.land(options.lakehouse, SCANS, name, events))
    manifest.orders += len(orders)
    manifest.save()
    print(
        f"landed {len(orders)} orders, and {len(events)} scan events {'on the topic' if options.kafka else 'as files'}"
    )


if __name__ == "__main__":
    sys.exit(main())
