"""Records leave as envelopes: files that appear whole, or messages; the manifest remembers what has left."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from data_generator.world import Record


@dataclass
class Manifest:
    """What has landed in this lakehouse so far."""

    path: Path
    orders: int = 0
    records: dict[str, int] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, lakehouse: Path) -> Manifest:
        """The lakehouse's manifest, empty if nothing has landed."""
        path = lakehouse / "Files" / "manifest" / "manifest.json"
        return cls(path, **json.loads(path.read_text())) if path.is_file() else cls(path)

    def count(self, entity: str, records: int, file: str | None = None) -> None:
        """Add what has just left."""
        self.records[entity] = self.records.get(entity, 0) + records
        if file and file not in self.files:
            self.files.append(file)

    def save(self) -> None:
        """Write it, whole or not at all."""
        known = {key: value for key, value in asdict(self).items() if key != "path"}
        write_whole(self.path, json.dumps(known, indent=2).encode())


def envelope(entity: str, records: list[Record]) -> dict[str, Any]:
    """The envelope around records of one entity, enqueued when the last of them was generated."""
    meta = {
        "schemaVersion": "1.0",
        "producer": "mcmillan",
        "recordType": entity,
        "enqueuedTime": max(record["GeneratedAt"] for record in records),
    }
    return {"_meta": meta, "data": records}


def land(lakehouse: Path, entity: str, name: str, records: list[Record]) -> str:
    """Land one envelope file; returns its path within the lakehouse."""
    place = f"Files/landing/{entity}/{entity}_{name}.json"
    write_whole(lakehouse / place, json.dumps(envelope(entity, records), indent=2).encode())
    return place


def send(bootstrap_servers: str, entity: str, batches: list[tuple[str, list[Record]]], *, seconds: float = 60) -> None:
    """Send one envelope message a key and return when the broker has them all."""
    from confluent_kafka import Producer

    failed: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "log_level": 2})
    for key, records in batches:
        value = json.dumps(envelope(entity, records)).encode()
        producer.produce(entity, value, key, on_delivery=lambda error, _: failed.append(str(error)) if error else None)
    left = producer.flush(seconds)
    if failed or left:
        raise ConnectionError(
            f"{left + len(failed)} messages did not reach {bootstrap_servers}: {failed[:1] or 'no answer'}"
        )


def write_whole(path: Path, content: bytes) -> None:
    """A reader of the folder sees all of the file or none of it: readers skip names that begin with a dot."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_bytes(content)
    draft.replace(path)
