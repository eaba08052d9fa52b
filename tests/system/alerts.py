"""Series that make each alert fire, and series that must not."""

from typing import NamedTuple

# A moment of an hour, in seconds; the first moment is 0.
HOUR = 3600
DAY = 24 * HOUR


class Case(NamedTuple):
    """Series with a value for each minute, as promtool writes them, and who is alerted when.

    `labels` are those of the alert beside its severity; None when it must not fire.
    """

    alert: str
    minute: int
    series: dict[str, str]
    labels: dict[str, str] | None = None


ONE = {"job": "factbook", "instance": "one"}
SOURCE = {"job": "factbook", "source": "github"}
DOWN = SOURCE | {"state": "down"}
PARTIAL = SOURCE | {"state": "partial"}
JOB = {"job": "factbook"}


def of(name: str, labels: dict[str, str], **more: str) -> str:
    """A series as it is written."""
    given = ", ".join(f'{key}="{value}"' for key, value in {**labels, **more}.items())
    return f"factbook_{name}{{{given}}}"


def requests(name: str, **more: str) -> str:
    labels = {"route": "/api/catalog/entities", "method": "GET", "status": "200"}
    return of(f"http_request_seconds_{name}", ONE, **{**labels, **more})


def buckets(name: str, *counts: tuple[str, str], **labels: str) -> dict[str, str]:
    """Buckets with their bounds and what they count."""
    return {of(f"{name}_bucket", ONE, **labels, le=bound): count for bound, count in counts}


LAG = "event_loop_lag_seconds"
WAIT = "database_write_wait_seconds"
HTTP = "http_request_seconds"
READS = {"route": "/api/catalog/entities", "method": "GET", "status": "200"}
PUSHES = {"route": "/sets/{set_id}", "method": "PUT", "status": "200"}
FREE, SIZE, FILE = (of(name, ONE) for name in ("disk_free_bytes", "disk_bytes", "database_bytes"))
SUCCESS = of("source_last_success_timestamp_seconds", SOURCE, instance="one")
CADENCE = of("source_cadence_seconds", SOURCE, instance="one")
LEFT = of("source_rate_limit_remaining", SOURCE, instance="one")
CALLS = of("source_last_run_calls", SOURCE, instance="one")
EXPIRY = of("source_credential_expiry_timestamp_seconds", SOURCE, instance="one")
OLDEST_BATCH = of("collection_oldest_timestamp_seconds", ONE)
OLDEST_MESSAGE = of("webhook_oldest_timestamp_seconds", ONE)
IMPORTER = {"job": "factbook", "importer": "github"}
READ_WHOLE = of("importer_last_complete_timestamp_seconds", IMPORTER, instance="one")
INTERVAL = of("importer_interval_seconds", IMPORTER, instance="one")
HELD = of("importer_held", IMPORTER, instance="one")
SWEPT = of("housekeeping_last_success_timestamp_seconds", ONE, part="audit")
PART = {"job": "factbook", "part": "audit"}
REPLICA = of("database_replica_usable", ONE)
BELIEVED = of("housekeeping_clock_believed", ONE)
UP = 'up{job="factbook", instance="one"}'

CASES = (
    Case("FactbookDown", 5, {UP: "1 1 0x10"}, ONE),
    Case("FactbookDown", 5, {'up{job="other", instance="x"}': "1x10"}, JOB),
    Case("FactbookDown", 5, {UP: "1x4 0x10"}),
    Case("FactbookDown", 10, {UP: "1x20"}),
    Case(
        "FactbookNotReady",
        15,
        {requests("count", route="/readyz", status="503"): "0+6x20"},
        ONE,
    ),
    Case("FactbookNotReady", 15, {requests("count", route="/readyz"): "0+6x20"}),
    Case("FactbookDatabaseNotWritable", 5, {of("database_writable", ONE): "1 0x10"}, ONE),
    Case("FactbookDatabaseNotWritable", 5, {of("database_writable", ONE): "1 0 1x10"}),
    Case(
        "FactbookErrors",
        15,
        {requests("count"): "0+97x20", requests("count", status="500"): "0+3x20"},
        JOB,
    ),
    Case(
        "FactbookErrors",
        15,
        {
            requests("count"): "0+997x20",
            requests("count", status="500"): "0+3x20",
            requests("count", status="404"): "0+100x20",
            requests("count", route="/readyz", status="503"): "0+600x20",
        },
    ),
    Case(
        "FactbookToolsFail",
        5,
        {of("tool_calls_total", ONE, tool="get-entity-facts", outcome="failed"): "0 0 1x10"},
        {**JOB, "tool": "get-entity-facts"},
    ),
    Case(
        "FactbookToolsFail",
        5,
        {of("tool_calls_total", ONE, tool="get-entity-facts", outcome="refused"): "0+9x10"},
    ),
    Case(
        "FactbookSlow",
        20,
        buckets(HTTP, ("1", "0+90x30"), ("2.5", "0+100x30"), ("+Inf", "0+100x30"), **READS),
        JOB,
    ),
    Case(
        "FactbookSlow",
        20,
        buckets(HTTP, ("0.5", "0+100x30"), ("1", "0+100x30"), ("+Inf", "0+100x30"), **READS)
        | buckets(HTTP, ("1", "0+0x30"), ("10", "0+50x30"), ("+Inf", "0+50x30"), **PUSHES),
    ),
    Case(
        "FactbookEventLoopLate",
        20,
        buckets(LAG, ("0.25", "0+100x30"), ("0.5", "0+120x30"), ("+Inf", "0+120x30")),
        ONE,
    ),
    Case(
        "FactbookEventLoopLate",
        20,
        buckets(LAG, ("0.1", "0+120x30"), ("0.25", "0+120x30"), ("+Inf", "0+120x30")),
    ),
    Case(
        "FactbookRequestsShed",
        12,
        {of("requests_shed_total", ONE, reason="under_way"): "0+1x20"},
        ONE,
    ),
    Case(
        "FactbookRequestsShed", 12, {of("requests_shed_total", ONE, reason="under_way"): "0 5x20"}
    ),
    Case(
        "FactbookWritesWait",
        20,
        buckets(WAIT, ("2.5", "0+50x30"), ("10", "0+100x30"), ("+Inf", "0+100x30")),
        ONE,
    ),
    Case(
        "FactbookWritesWait",
        20,
        buckets(WAIT, ("2.5", "0+99x30"), ("10", "0+100x30"), ("+Inf", "0+100x30")),
    ),
    Case("FactbookReadsWait", 10, {of("database_reads_waiting", ONE): "3x20"}, ONE),
    Case("FactbookReadsWait", 10, {of("database_reads_waiting", ONE): "3x7 0 3x20"}),
    Case("FactbookDiskNearlyFull", 15, {FREE: "9x20", SIZE: "100x20", FILE: "5x20"}, ONE),
    Case("FactbookDiskNearlyFull", 15, {FREE: "40x20", SIZE: "100x20", FILE: "50x20"}, ONE),
    Case("FactbookDiskNearlyFull", 15, {FREE: "40x20", SIZE: "100x20", FILE: "30x20"}),
    Case("FactbookHousekeepingFails", 75, {SWEPT: "0x100"}, PART),
    Case("FactbookHousekeepingFails", 75, {SWEPT: "0+60x100"}),
    Case("FactbookReplicaUnused", 16, {REPLICA: "0x30"}, ONE),
    Case("FactbookReplicaUnused", 16, {REPLICA: "0x10 1x20"}),
    Case("FactbookClockNotBelieved", 6, {BELIEVED: "0x20"}, JOB),
    Case("FactbookClockNotBelieved", 6, {BELIEVED: "1x20"}),
    Case("FactbookSourceDown", 20, {of("source_state", DOWN, instance="one"): "1x30"}, SOURCE),
    Case("FactbookSourceDown", 20, {of("source_state", DOWN, instance="one"): "1x9 0x30"}),
    Case("FactbookSourcePartial", 370, {of("source_state", PARTIAL): "1x400"}, SOURCE),
    Case("FactbookSourcePartial", 370, {of("source_state", PARTIAL): "1x300 0x100"}),
    Case("FactbookSourceStale", 215, {SUCCESS: "0x300", CADENCE: f"{HOUR}x300"}, SOURCE),
    Case("FactbookSourceStale", 175, {SUCCESS: "0x300", CADENCE: f"{HOUR}x300"}),
    Case("FactbookSourceStale", 215, {SUCCESS: f"0x100 {HOUR}x200", CADENCE: f"{HOUR}x300"}),
    Case("FactbookCredentialExpires", 70, {EXPIRY: f"{13 * DAY}x100"}, SOURCE),
    Case("FactbookCredentialExpires", 70, {EXPIRY: f"{15 * DAY}x100"}),
    Case(
        "FactbookRateLimitLow",
        130,
        {LEFT: "500x200", CALLS: "900x200", CADENCE: f"{HOUR}x200"},
        SOURCE,
    ),
    Case("FactbookRateLimitLow", 130, {LEFT: "500x200", CALLS: "90x200", CADENCE: f"{HOUR}x200"}),
    Case("FactbookRateLimitLow", 130, {LEFT: "500x200", CALLS: "900x200", CADENCE: f"{DAY}x200"}),
    Case("FactbookImportStale", 215, {READ_WHOLE: "0x300", INTERVAL: f"{HOUR}x300"}, IMPORTER),
    Case("FactbookImportStale", 175, {READ_WHOLE: "0x300", INTERVAL: f"{HOUR}x300"}),
    Case("FactbookImportStale", 215, {READ_WHOLE: "0x300"}),
    Case("FactbookImportHeld", 70, {HELD: "3x100"}, IMPORTER),
    Case("FactbookImportHeld", 70, {HELD: "3x30 0x70"}),
    Case("FactbookCollectionLate", 25, {OLDEST_BATCH: "0x40"}, JOB),
    Case("FactbookCollectionLate", 25, {OLDEST_BATCH: "0+60x40"}),
    Case("FactbookWebhookDisabled", 6, {of("webhooks", ONE, state="disabled"): "1x20"}, JOB),
    Case("FactbookWebhookDisabled", 6, {of("webhooks", ONE, state="enabled"): "1x20"}),
    Case("FactbookDigestFailing", 130, {of("digests", ONE, state="failing"): "0x5 1x200"}, JOB),
    Case("FactbookDigestFailing", 130, {of("digests", ONE, state="failing"): "1x60 0x90"}),
    Case("FactbookWebhookLate", 70, {OLDEST_MESSAGE: "0x90"}, JOB),
    Case("FactbookWebhookLate", 70, {OLDEST_MESSAGE: "0x30 1800x60"}),
    Case("FactbookAuditDropped", 5, {of("audit_dropped_total", ONE): "0 0 7x10"}, JOB),
    Case("FactbookAuditDropped", 5, {of("audit_dropped_total", ONE): "7x10"}),
)
