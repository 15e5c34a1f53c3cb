"""McMillan's orders and the scan events of their shipments: the same seed gives the same records, anywhere."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

Record = dict[str, Any]

EPOCH = datetime(2026, 1, 5, 8, tzinfo=UTC)
ORGANIZATION = 1
ITEMS = [  # SKU, description, kilograms, price in cents
    ("VE-0.5-DAM-062684803", "Damper valve 0.5 in", 0.4, 1895),
    ("TR-1.0-S.K-032138109", "Seal kit 1.0 in", 0.1, 1240),
    ("BO-2.0-FLG-118204417", "Flange 2.0 in", 3.2, 5410),
    ("KE-4.0-GAT-551027346", "Gate valve 4.0 in", 21.5, 48900),
]
ROUTE = [  # event, hours after the order, facility, latitude, longitude
    ("Created", 4, "DC001", 32.7767, -96.797),
    ("Received", 6, "DC001", 32.7767, -96.797),
    ("Processed", 9, "DC001", 32.7767, -96.797),
    ("Departed", 12, "DC001", 32.7767, -96.797),
    ("Received", 26, "HUB001", 33.749, -84.388),
    ("OutForDelivery", 48, "HUB001", 33.749, -84.388),
    ("Delivered", 54, "HUB001", 33.749, -84.388),
]


def orders(seed: int, first: int, count: int) -> Iterator[Record]:
    """The orders number `first`, `first` + 1, … of this world.

    >>> next(orders(7, 1, 1))["OrderNumber"]
    'SO00000001'
    """
    for number in range(first, first + count):
        yield _order(seed, number)


def scan_events(seed: int, number: int) -> list[Record]:
    """The life of the shipment of order `number`, first scan to last.

    >>> [event["SequenceNumber"] for event in scan_events(7, 1)]
    [1, 2, 3, 4, 5, 6, 7]
    """
    chance = Random(f"{seed} scans {number}")
    shipment = _uuid(chance)
    return [_scan(chance, shipment, number, step) for step in range(len(ROUTE))]


def _order(seed: int, number: int) -> Record:
    chance = Random(f"{seed} order {number}")
    lines = [_line(chance, line) for line in range(1, chance.randint(1, 4) + 1)]
    cents = sum(Decimal(str(line["ExtendedPrice"])) for line in lines)
    return {
        "OrderId": _uuid(chance),
        "OrderNumber": f"SO{number:08d}",
        "OrderDate": _ordered_at(number).date().isoformat(),
        "OrderTotal": float(cents),
        "Source": chance.choice(["Email", "Web", "Phone"]),
        "CustomerId": _uuid(chance),
        "OrderLines": lines,
        "OrganizationId": ORGANIZATION,
        "GeneratedAt": _ordered_at(number).isoformat(),
    }


def _line(chance: Random, line: int) -> Record:
    sku, description, weight, cents = chance.choice(ITEMS)
    quantity = chance.randint(1, 20)
    return {
        "LineNumber": line,
        "ItemId": _uuid(Random(sku)),
        "SKU": sku,
        "Description": description,
        "NetWeight": weight,
        "Quantity": quantity,
        "UnitPrice": cents / 100,
        "ExtendedPrice": quantity * cents / 100,
        "WarrantyIncluded": chance.random() < 0.3,
    }


def _scan(chance: Random, shipment: str, number: int, step: int) -> Record:
    event, hours, facility, latitude, longitude = ROUTE[step]
    happened = _ordered_at(number) + timedelta(hours=hours, minutes=chance.randint(0, 59))
    return {
        "EventId": _uuid(chance),
        "SequenceNumber": step + 1,
        "ShipmentId": shipment,
        "TrackingNumber": f"FSX{number:09d}",
        "EventType": event,
        "EventTimestamp": happened.isoformat(),
        "FacilityId": facility,
        "EmployeeId": f"EMP{chance.randint(1, 400):04d}",
        "ScanDeviceId": f"DEV{chance.randint(1, 90):03d}",
        "LocationLatitude": latitude,
        "LocationLongitude": longitude,
        "AdditionalData": {"signedBy": "front desk"} if event == "Delivered" else {},
        "CurrentServiceLevel": "Standard",
        "CurrentOriginFacilityId": "DC001",
        "CurrentDestinationFacilityId": "HUB001",
        "PlannedPathSnapshot": ["DC001", "HUB001"],
        "OrganizationId": ORGANIZATION,
        "GeneratedAt": happened.isoformat(),
    }


def _ordered_at(number: int) -> datetime:
    return EPOCH + timedelta(minutes=7 * number)


def _uuid(chance: Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))
