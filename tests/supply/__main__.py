"""`python -m tests.supply`: licences, secrets in the repository, advisories. Fails on any.

With `--record`, an audit that finds nothing is noted in `requirements/audit.json`.
"""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests import tree
from tests.supply import advisories, licences, tracked

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements"
# All that the service can be installed with.
SHIPPED = REQUIREMENTS / "traces.lock"


def main(arguments: list[str]) -> int:
    """Check everything, say what is wrong on standard error, and return the exit code."""
    found = licences.problems(SHIPPED.read_text())
    found += tracked.problems(ROOT, tree.files(ROOT))
    audited = advisories.checked(
        sorted(REQUIREMENTS.glob("*.lock")),
        REQUIREMENTS / "audit.json",
        required=os.environ.get("AUDIT") == "required",
        record_on=datetime.now(UTC).date().isoformat() if "--record" in arguments else None,
    )
    for line in [*found, *audited.lines]:
        sys.stderr.write(f"{line}\n")
    return 1 if found or audited.failed else 0


sys.exit(main(sys.argv[1:]))
