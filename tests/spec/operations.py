"""Running the service for years: upgrades, and the record of who did what."""

from .requirement import Requirement

REQUIREMENTS: dict[str, Requirement] = {
    # Pipelines
    "pipelines.push-preview-gate": Requirement(
        "seed §1", "An action and a template push sets and facts, preview checks, and gate."
    ),
    "pipelines.one-comment": Requirement(
        "seed §1", "What a pull request would change is one comment, which later runs replace."
    ),
    "pipelines.forks-have-no-secret": Requirement(
        "seed §5", "A pipeline of a fork has no token, asks nothing, and ends well."
    ),
    "pipelines.inputs-are-no-code": Requirement(
        "seed §5", "What a workflow passes to the action is never run."
    ),
    # Kubernetes
    "deploy.chart-is-valid": Requirement(
        "seed §1", "Helm renders the chart for every value as valid objects of Kubernetes."
    ),
    "deploy.chart-is-restrained": Requirement(
        "seed §5", "Pods of the chart have no privileges, and a read-only root."
    ),
    # Image, containers and units
    "deploy.image-is-restrained": Requirement(
        "seed §5",
        "The image runs as a user of its own, writes nowhere but its volume, and can "
        "install nothing.",
    ),
    "deploy.image-lists-its-packages": Requirement(
        "seed §5", "The bill of materials of an image names what is in it, in CycloneDX."
    ),
    "deploy.platforms": Requirement(
        "seed §9", "The image is for amd64 and arm64, and no package of it has to be compiled."
    ),
    "deploy.pods-end-in-order": Requirement(
        "seed §9", "Pods that are ended while they work end within their time, and lose nothing."
    ),
    "deploy.files-are-started": Requirement(
        "seed §1", "The compose files and the units start a service that can be pushed to."
    ),
    # Releases
    "releases.one-version": Requirement(
        "seed §9", "Package, chart, documentation and tag have one version, from one place."
    ),
    "releases.dry-run": Requirement(
        "seed §9", "Whatever of a release reaches nobody else is done in a clean clone by tests."
    ),
    "releases.bill-of-materials": Requirement(
        "seed §5", "A release has the bill of materials of each platform's image, and attests it."
    ),
    "releases.no-stored-secret": Requirement(
        "seed §5", "Workflows store no secret, and each job has the least permissions."
    ),
    # Upgrades
    "upgrades.every-schema-with-its-data": Requirement(
        "seed §9", "From every schema on, an upgrade keeps all data, and work goes on."
    ),
    "upgrades.the-release-before-goes-on": Requirement(
        "seed §9", "The release before works, and starts, on the schema of the next one."
    ),
    "upgrades.an-outdated-release-refuses": Requirement(
        "seed §9", "A release that the schema has left behind refuses, and says what to install."
    ),
    "upgrades.every-form-of-a-migration": Requirement(
        "seed §9", "Whichever form of a migration was applied, the schema becomes the same."
    ),
    "upgrades.the-schema-is-compared": Requirement(
        "seed §9", "A start and the doctor tell how a schema differs from the expected one."
    ),
    # Housekeeping
    "housekeeping.a-leap-deletes-nothing": Requirement(
        "seed §7", "A clock that is far ahead deletes nothing until somebody confirms it."
    ),
    "housekeeping.parts-are-known": Requirement(
        "seed §7", "When each part of the housekeeping last succeeded, and why it fails, is told."
    ),
    "housekeeping.search-keys-are-forgotten": Requirement(
        "seed §7", "Search keys that no entity has are forgotten, and none that is being used."
    ),
    # Backups
    "backups.whole-while-pushed": Requirement(
        "seed §9", "A backup that is made under pushes holds every set whole."
    ),
    "backups.restore-answers-the-same": Requirement(
        "seed §9", "After a restore the service answers as at the backup."
    ),
    "backups.feed-begins-anew": Requirement(
        "seed §9", "After a restore readers of the feed get 410, and no id comes again."
    ),
    "backups.survive-a-kill": Requirement(
        "seed §9", "A killed backup or restore leaves nothing that is broken."
    ),
    # The doctor
    "doctor.unknown-facts": Requirement(
        "seed §9", "The doctor names the facts that a credential keeps unknown."
    ),
    # Traces, metrics and alerts
    "traces.request-database-upstream": Requirement(
        "seed §9", "One trace holds a request, its statements and the calls to others."
    ),
    "traces.no-secret": Requirement("seed §9", "No byte of a trace holds a secret or a name."),
    "traces.disturb-nobody": Requirement(
        "seed §9", "A collector that is away or silent does not slow the service or fill its log."
    ),
    "collecting.partial-runs": Requirement(
        "seed §7",
        "A run in which a fact failed for a passing reason is partial; gaps are counted.",
    ),
    "collecting.refusals-name-their-cause": Requirement(
        "decisions §4.7", "A refusal names its cause in a sentence that is fixed."
    ),
    "collecting.refused-credentials-say-nothing": Requirement(
        "decisions §5.4", "A refused credential says nothing about an entity."
    ),
    "collecting.one-target-costs-no-other": Requirement(
        "decisions §5.3", "A target that always fails costs no other its facts."
    ),
    "collecting.one-state": Requirement(
        "seed §7", "Every interface gives the same state for the same source."
    ),
    "traces.nothing-when-off": Requirement(
        "seed §9", "Without traces nothing of OpenTelemetry is loaded or in the way."
    ),
    "metrics.documented": Requirement(
        "seed §9", "Every metric is documented with its labels, and no other."
    ),
    "alerts.fire-when-they-have-to": Requirement(
        "seed §9", "Every alert fires on what it is for, and not otherwise."
    ),
    # The audit
    "audit.says-what-allowed-a-write": Requirement(
        "decisions §6.2", "The record of a write names the role, group or token that allowed it."
    ),
    "audit.every-write": Requirement(
        "decisions §6.2", "Every write, sign-in and change of a token leaves a record."
    ),
    "audit.every-refused-call": Requirement(
        "decisions §6.2", "Every refused call leaves a record."
    ),
    "audit.exported-as-json-lines": Requirement(
        "decisions §6.2", "The audit is exported as JSON lines, and an export can be continued."
    ),
    # PostgreSQL that fails, and many processes on it
    "faults.postgresql-away-is-503": Requirement(
        "seed §7", "While PostgreSQL is away calls get 503, and afterwards nothing is lost."
    ),
    "faults.postgresql-refuses": Requirement(
        "seed §7", "No connection, a lock, a replica: 503, with the cause in the log."
    ),
    "faults.deadlocks-are-run-again": Requirement(
        "seed §7", "A write that PostgreSQL ends as the victim of a deadlock is done all the same."
    ),
    # Starting and stopping
    "shutdown.ends-in-time": Requirement(
        "seed §9", "A process told to stop ends in bounded time, whatever its work does."
    ),
    "shutdown.port-in-use": Requirement(
        "seed §9", "A start on a port in use changes nothing, fails, and names the address."
    ),
    # SQLite that fails, kills, clocks, vendors that answer garbage
    "faults.sqlite-locked": Requirement(
        "seed §7", "A push waits for a locked file, then gets 503; reads go on."
    ),
    "faults.sqlite-disk-full-or-read-only": Requirement(
        "seed §7",
        "Without room or the right to write, pushes get 503, reads go on, nothing is lost.",
    ),
    "faults.sqlite-start-on-a-full-disk": Requirement(
        "seed §7",
        "A service that starts on a full disk reads, says why it cannot write, and recovers.",
    ),
    "faults.sqlite-damaged": Requirement(
        "seed §7", "A file that is damaged, removed or replaced is refused with advice."
    ),
    "faults.kills": Requirement(
        "seed §7", "Processes killed at random moments under load lose nothing acknowledged."
    ),
    "faults.failover": Requirement(
        "decisions §2.1",
        "What was acknowledged outlives the primary; what no replica confirms is not acknowledged.",
    ),
    "faults.clock": Requirement(
        "seed §7",
        "A clock that is set back or leaps ahead loses nothing and keeps nothing waiting.",
    ),
    "faults.garbage-upstream": Requirement(
        "seed §7", "Garbage from a vendor costs no last value and few calls, and passes with it."
    ),
    "machines.any-process-may-answer": Requirement(
        "decisions §6.1", "Which process on the database answers makes no difference."
    ),
    "machines.work-is-done-once": Requirement(
        "decisions §6.1", "Of many processes one does each piece of work."
    ),
    # Security
    "security.every-threat-has-a-test": Requirement(
        "seed §5", "The threat model names a test for every threat, and the test exists."
    ),
    "security.no-secret-leaves": Requirement(
        "decisions §6.4",
        "No secret is in an answer, a log, the audit, an event, a page, a process or the database.",
    ),
    "security.webhook-addresses-are-secrets": Requirement(
        "decisions §6.4",
        "The address of a webhook is sealed at rest, and shown in no answer but the first.",
    ),
    "security.slow-clients-hold-nothing": Requirement(
        "seed §8", "A client that sends or takes next to nothing is hung up on."
    ),
    "security.slow-clients-get-long-answers": Requirement(
        "seed §8",
        "A client that takes a long answer slowly but steadily gets all of it; one that is given up"
        " is counted, logged and can tell.",
    ),
    "security.requests-are-read-in-one-way": Requirement(
        "seed §8", "A request of unclear length, two hosts or a huge head is refused."
    ),
    "security.requests-end-in-one-place": Requirement(
        "seed §8",
        "A body is never read as a request: not behind an upgrade that is declined, nor anything "
        "behind a request that is refused or the last of its connection.",
    ),
    "security.log-lines-are-bounded": Requirement(
        "decisions §6.4", "What a stranger sends takes few lines of the log."
    ),
    "security.builds-are-pinned": Requirement(
        "seed §5", "Base images, build tools and packages are given by their hashes."
    ),
    "security.packages-are-checked": Requirement(
        "seed §5", "Licences, advisories and secrets in files are checked with every change."
    ),
}
