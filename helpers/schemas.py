"""What a record looks like when it lands: one entity, one schema, in the order of its fields."""

from __future__ import annotations

_STANDARD = "OrganizationId INT, GeneratedAt STRING"

ORDER = f"""
    OrderId STRING, OrderNumber STRING, OrderDate STRING, OrderTotal DOUBLE, Source STRING, CustomerId STRING,
    OrderLines ARRAY<STRUCT<
        LineNumber: INT, ItemId: STRING, SKU: STRING, Description: STRING, NetWeight: DOUBLE, Quantity: INT,
        UnitPrice: DOUBLE, ExtendedPrice: DOUBLE, WarrantyIncluded: BOOLEAN>>,
    {_STANDARD}"""

SHIPMENT_SCAN_EVENT = f"""
    EventId STRING, SequenceNumber INT, ShipmentId STRING, TrackingNumber STRING, EventType STRING,
    EventTimestamp STRING, FacilityId STRING, EmployeeId STRING, ScanDeviceId STRING, NextWaypointFacilityId STRING,
    RouteId STRING, ScheduleId STRING, EstimatedArrivalTime STRING, ExceptionCode STRING, ExceptionSeverity STRING,
    ResolutionAction STRING, RelatedExceptionEventId STRING, LocationLatitude DOUBLE, LocationLongitude DOUBLE,
    SortingEquipmentId STRING, SortLaneId STRING,
    AdditionalData STRUCT<
        method: STRING, condition: STRING, sortDecision: STRING, loadId: STRING, transportType: STRING,
        vehicleId: STRING, stopSequence: INT, signedBy: STRING, review: STRING, reason: STRING, resolution: STRING,
        note: STRING, reroute: STRING>,
    CurrentServiceLevel STRING, CurrentOriginFacilityId STRING, CurrentDestinationFacilityId STRING,
    PlannedPathSnapshot ARRAY<STRING>, {_STANDARD}"""
