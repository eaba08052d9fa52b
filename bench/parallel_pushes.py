"""Two pushes of different sets at once on PostgreSQL, by two servers: how long others must wait."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Self

import psycopg

from bench import catalog
from bench.databases import Database
from bench.findings import Findings
from bench.run import Run
from bench.service import Factbook

_LOOK_SECONDS = 0.002


def parallel_pushes(run: Run) -> Findings:
    """The share of each push for which it holds a lock that every push needs, at once and alone."""
    sets = {
        name: list(catalog.entities(run.options.entities, seed, f"{name}-"))
        for seed, name in enumerate(("one", "two"))
    }
    forms = {
        "new": {name: catalog.body(items) for name, items in sets.items()},
        "changed": {name: catalog.body(catalog.changed(items, 1)) for name, items in sets.items()},
    }
    findings = Findings()
    for number in run.rounds:
        alone, _ = _round(run, forms, 1)
        at_once, shares = _round(run, forms, 2)
        for form in forms:
            slower = at_once[form] / alone[form]
            findings.add(f"{form}-lock", 100 * max(shares[form]), least=100 * min(shares[form]))
            findings.add(f"{form}-time", slower, at_once_s=at_once[form], alone_s=alone[form])
            run.say(
                f"round {number + 1}: {form}: {at_once[form]:.2f} s, alone {alone[form]:.2f} s, "
                f"locked {[f'{share:.1%}' for share in shares[form]]}"
            )
    return findings


def _round(
    run: Run, forms: dict[str, dict[str, bytes]], at_once: int
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Seconds until the sets are pushed, `at_once` of them at a time, and the shares of locks."""
    seconds: dict[str, float] = {}
    shares: dict[str, list[float]] = {}
    with run.fresh("postgresql") as service, ExitStack() as stack:
        another = stack.enter_context(run.serving(service.database, service.token))
        pool = stack.enter_context(ThreadPoolExecutor(at_once))
        for form, bodies in forms.items():
            pairs = zip((service, another), bodies.items(), strict=True)
            with _Sampler(service.database) as sampler:
                began = time.perf_counter()
                # The last answer is awaited by the pool.
                list(pool.map(_push, pairs))
                seconds[form] = time.perf_counter() - began
            shares[form] = sampler.shares()
    return seconds, shares


def _push(pair: tuple[Factbook, tuple[str, bytes]]) -> None:
    service, (name, body) = pair
    service.push(name, body)


class _Sampler(threading.Thread):
    """Looks at the locks of every write, until the end of the block."""

    def __init__(self, database: Database) -> None:
        super().__init__(name="sampler", daemon=True)
        self._url = database.url
        self._ended = threading.Event()
        self._writing: Counter[int] = Counter()
        self._locking: Counter[int] = Counter()

    def run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._ended.wait(_LOOK_SECONDS):
                for pid, common in connection.execute(_LOCKS):
                    self._writing[pid] += 1
                    self._locking[pid] += common

    def shares(self) -> list[float]:
        """For each of the pushes, the share of its time."""
        # A process writes other things, too, which take no time.
        pushes = [pid for pid, _ in self._writing.most_common(2)]
        return [self._locking[pid] / self._writing[pid] for pid in pushes]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self.join()


# A push has its set for itself, one lock, and further ones while others may have to wait. The
# locks with two numbers are those of everybody, of which it has the one of the catalog shared.
_LOCKS = """
SELECT pid, CASE WHEN count(*) FILTER (WHERE mode = 'ExclusiveLock' AND objsubid = 1) > 1
    OR bool_or(mode = 'ExclusiveLock' AND objsubid = 2) THEN 1 ELSE 0 END
FROM pg_locks
WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
GROUP BY pid
"""
