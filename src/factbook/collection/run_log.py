"""Reports on runs, in the log and in traces."""

import structlog

from factbook.scheduling.run_queue import Batch
from factbook.scheduling.runs import EndedRun
from factbook.telemetry.spans import Attributes, Tracer, Work

log = structlog.get_logger("factbook.collecting")


def work(source_id: str, run_id: int, deadline: int) -> Work:
    """A run in traces; run ids repeat between databases, but their deadlines do not."""
    return Work("run", f"{source_id} {run_id} {deadline}")


def about(batch: Batch) -> Attributes:
    """The attributes of the span of a batch."""
    return {
        "factbook.source.id": batch.source_id,
        "factbook.run.id": batch.run_id,
        "factbook.attempt": batch.attempts,
    }


def tell(ended: EndedRun, tracer: Tracer) -> None:
    """Report the end of a run, and a change of its source to down or up."""
    run, change = ended
    source = {"source": run.source_id, "covered": run.covered, "failed": run.failed}
    log.info("run.ended", **source, skipped=run.skipped, calls=run.calls, state=run.state)
    if change == "down":
        log.error("source.down", **source, reason=run.error)
    elif change == "up":
        log.info("source.up", **source)
    figures: Attributes = {
        "factbook.source.id": run.source_id,
        "factbook.run.id": run.id,
        "factbook.run.reason": run.reason,
        "factbook.run.covered": run.covered,
        "factbook.run.failed": run.failed,
        "factbook.run.skipped": run.skipped,
        "factbook.run.calls": run.calls,
    }
    # What follows the first word of an error says more than a trace should.
    failure = (run.error or "failed").partition(":")[0] if run.state == "failed" else None
    this = work(run.source_id, run.id, run.deadline)
    tracer.ended(this, figures, run.started_at, run.finished_at or run.started_at, failure)
