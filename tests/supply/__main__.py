"""`python -m tests.supply`: licences, secrets in the repository, advisories. Fails on any.

With `--record`, an audit that finds nothing is noted in `requirements/audit.json`.
"""

import os
import sys
from pathlib import Path

from tests.supply import advisories, licences, tracked

ROOT = Path(__file__).parents[2]
LOCKS = [ROOT / "requirements" / name for name in ("runtime.lock", "dev.lock")]


def main() -> int:
    """Check everything, say what is wrong on standard error, and return the exit code."""
    found = licences.problems(LOCKS[0].read_text())
    found += tracked.problems(ROOT, tracked.files(ROOT))
    required = os.environ.get("AUDIT") == "required"
    audit = advisories.audit(LOCKS)
    notes = []
    if audit is None:
        notes = ["packages were not audited: the advisory service does not answer"]
    else:
        found += audit.advisories
        if audit.unknown:
            notes = [f"the advisory service does not know {', '.join(audit.unknown)}"]
    for line in [*found, *notes]:
        sys.stderr.write(f"{line}\n")
    return 1 if found or (notes and required) else 0


sys.exit(main())
