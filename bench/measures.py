"""The table of what is measured, with what each figure must not exceed."""

from collections.abc import Callable
from typing import NamedTuple

from bench import (
    agent_tools,
    check_rules,
    checks,
    collection,
    facts_across,
    history,
    large_entities,
    limits,
    pages,
    parallel_pushes,
    pushes,
    queries,
    read_scaling,
    reads,
    scorecards,
    startup,
    steady,
    tool_calls,
    vendors,
)
from bench.findings import Findings
from bench.run import Run


class Goal(NamedTuple):
    """A figure: its key among the findings, what it is, the most it may be, and its unit."""

    key: str
    text: str
    most: float
    unit: str


class Measure(NamedTuple):
    """What `--only` names: a function, and the figures that it finds.

    `lasts`: so long that it is measured only when it is named.
    """

    name: str
    run: Callable[[Run], Findings]
    goals: tuple[Goal, ...]
    lasts: bool = False


MEASURES = (
    Measure(
        "tool-calls",
        tool_calls.tool_calls,
        (
            Goal("sqlite/sdk", "get-entity-facts on SQLite, CPU ÷ Python SDK's server", 1 / 8, "x"),
            Goal("sqlite/asgi", "get-entity-facts on SQLite, CPU ÷ bare ASGI application", 2, "x"),
            Goal(
                "postgresql/sdk", "get-entity-facts on PostgreSQL, CPU ÷ SDK's server", 1 / 4, "x"
            ),
            Goal("driver", "÷ a bare read of the rows by the driver", 1.6, "x"),
        ),
    ),
    Measure(
        "lists",
        reads.lists,
        (
            Goal("sqlite", "/entities?filter=kind=component&limit=100, CPU, SQLite", 1.0, "ms"),
            Goal("postgresql", "the same on PostgreSQL", 1.0, "ms"),
            Goal("driver", "÷ a bare read of the rows by the driver", 1.6, "x"),
        ),
    ),
    Measure(
        "by-name",
        reads.names,
        (
            Goal("sqlite", "by-name, random, CPU, SQLite", 0.35, "ms"),
            Goal("postgresql", "the same on PostgreSQL", 0.35, "ms"),
            Goal("driver", "÷ a bare read of the rows by the driver", 1.6, "x"),
        ),
    ),
    Measure(
        "queries",
        queries.queries,
        (
            *(
                Goal(f"{dialect}-{name}", f"{text}, CPU, {database}", most, "ms")
                for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
                for name, text, most in (
                    ("page", "by-query, 20 components and their total, large catalog", 5.0),
                    ("text", "the same with a text in name or title", 20.0),
                    ("facets", "facets of kind and spec.type, large catalog", 20.0),
                )
            ),
            Goal("driver", "the page ÷ a bare read of its rows by the driver", 1.6, "x"),
        ),
    ),
    Measure(
        "facts-across",
        facts_across.facts_across,
        tuple(
            Goal(f"{dialect}-{name}", f"{text}, large catalog, {database}", most, "ms")
            for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
            for name, text, most in (
                ("boolean", "distribution of a boolean", 300.0),
                ("integer", "distribution of 400 integers", 300.0),
                ("float", "distribution of as many floats as entities", 300.0),
                ("owner", "distribution of a boolean by owner", 300.0),
                ("page", "100 entities with their values, by reference", 100.0),
                ("page-by-value", "100 entities with the lowest values", 100.0),
                ("kept", "distribution by owner, counted within the last minute", 100.0),
                ("kept-page-by-value", "the lowest values, read within the last minute", 100.0),
                ("web-page", "page of a fact, counted within the last minute", 100.0),
            )
        ),
    ),
    Measure(
        "agent-tools",
        agent_tools.agent_tools,
        (
            *(
                Goal(f"{dialect}-{name}", f"find-entities, {text}, CPU, {database}", most, "ms")
                for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
                for name, text, most in (
                    ("catalog", "by owner and lifecycle", 10.0),
                    ("fact", "by kind and a fact", 10.0),
                    ("facts", "by two facts", 10.0),
                    ("owner-fact", "by owner and a fact", 10.0),
                    ("count", "numbers alone by two facts of all", 3_000.0),
                )
            ),
            Goal("sqlite-entity", "get-entity, CPU ÷ get-entity-facts, SQLite", 2.0, "x"),
            Goal("postgresql-entity", "the same, PostgreSQL", 2.0, "x"),
        ),
    ),
    Measure(
        "scorecards",
        scorecards.scorecards_of_all,
        tuple(
            Goal(f"{dialect}-{name}", f"{text}, CPU, 100,000 entities, {database}", 50.0, "ms")
            for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
            for name, text in (
                ("owner", "rollup by 1,000 groups"),
                ("system", "rollup by 2,000 systems"),
                ("domain", "rollup by domain"),
                ("label", "rollup by a label"),
                ("trend", "trend of a year"),
            )
        ),
    ),
    Measure(
        "streams",
        queries.streams,
        (
            Goal(
                "sqlite-memory-writer",
                "all entities of the large catalog, time ÷ writing the bytes from memory, SQLite",
                2.0,
                "x",
            ),
            Goal("sqlite-file-writer", "÷ writing the bytes from rows of a SQLite file", 2.0, "x"),
            Goal("sqlite-peak", "extra peak memory meanwhile", 32.0, "MB"),
            Goal("postgresql-memory-writer", "the same on PostgreSQL ÷ from memory", 2.0, "x"),
            Goal("postgresql-file-writer", "÷ from rows of a SQLite file", 2.0, "x"),
            Goal("postgresql-peak", "extra peak memory meanwhile", 32.0, "MB"),
        ),
    ),
    Measure(
        "pushes",
        pushes.pushes,
        (
            Goal("sqlite-new", "PUT of new entities until all are readable, SQLite", 2.0, "s"),
            Goal("sqlite-same", "identical re-send, SQLite", 0.5, "s"),
            Goal("sqlite-changed", "1 % changed, SQLite", 0.6, "s"),
            Goal("postgresql-new", "PUT of new entities until all are readable, PG", 3.0, "s"),
            Goal("postgresql-same", "identical re-send, PostgreSQL", 0.5, "s"),
            Goal("postgresql-changed", "1 % changed, PostgreSQL", 0.6, "s"),
            Goal(
                "sqlite-new-json", "PUT of new entities ÷ json.loads of the body, SQLite", 25, "x"
            ),
            Goal("sqlite-same-json", "identical re-send ÷ the same", 6, "x"),
            Goal("sqlite-changed-json", "1 % changed ÷ the same", 7, "x"),
        ),
    ),
    Measure(
        "parallel-pushes",
        parallel_pushes.parallel_pushes,
        (
            Goal("new-lock", "two new sets at once, PostgreSQL: time under a common lock", 15, "%"),
            Goal("changed-lock", "the same, every entity changed", 15, "%"),
            Goal("new-time", "two new sets at once ÷ one after the other", 1.0, "x"),
            Goal("changed-time", "the same, every entity changed", 1.0, "x"),
        ),
    ),
    Measure(
        "large-push",
        pushes.large_push,
        (
            Goal("time", "PUT of ten times as many new entities, SQLite", 30.0, "s"),
            Goal("memory", "extra peak memory of the server", 600.0, "MB"),
            Goal("p99", "by-name meanwhile, p99", 50.0, "ms"),
            Goal("failed", "other writes and reads meanwhile that failed", 0, ""),
        ),
    ),
    Measure(
        "all-facts",
        tool_calls.all_facts,
        (
            Goal(
                "sqlite-cpu", "get-all-entities-facts, CPU ÷ encoding its bytes, SQLite", 2.0, "x"
            ),
            Goal("sqlite-memory", "its extra peak memory ÷ the answer, SQLite", 2.0, "x"),
            Goal("postgresql-cpu", "CPU ÷ encoding its bytes, PostgreSQL", 2.0, "x"),
            Goal("postgresql-memory", "extra peak memory ÷ the answer, PostgreSQL", 2.0, "x"),
        ),
    ),
    Measure(
        "collection",
        collection.collection,
        (
            *(
                Goal(f"{dialect}-{name}", f"{text}, {database}", most, unit)
                for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
                for name, text, most, unit in (
                    ("first-cpu", "new repositories, the worker's CPU of each", 5.0, "ms"),
                    ("first-time", "from the start to the end of that run", 30.0, "s"),
                    ("first-graphql", "its GraphQL requests", 100, ""),
                    ("first-trees", "its calls for any tree", 1, ""),
                    ("first-probes", "its probes of any repository", 1, ""),
                    ("warm-cpu", "the same again, CPU of each", 5.0, "ms"),
                    ("warm-graphql", "its GraphQL requests", 100, ""),
                    ("warm-rest", "its REST calls", 0, ""),
                    ("moved-trees", "after some commits, REST calls for each of them", 1, ""),
                )
            ),
            Goal("two-workers", "20 credentials, PostgreSQL: time of two workers ÷ one", 0.6, "x"),
            Goal("two-workers-fast", "the same with answers in 50 ms, not 200", 0.6, "x"),
        ),
    ),
    Measure(
        "starts",
        startup.starts,
        (
            Goal("time", "start to first 200", 1.5, "s"),
            Goal("memory", "idle memory of one process", 100.0, "MB"),
        ),
    ),
    Measure(
        "visibility",
        reads.visibility,
        (
            Goal("sqlite", "writes of another process missed by the next call, SQLite", 0, ""),
            Goal("postgresql", "the same on PostgreSQL", 0, ""),
        ),
    ),
    Measure(
        "pages",
        pages.pages,
        tuple(
            Goal(f"{dialect}-{name}", f"{text}, {database}", most, unit)
            for dialect, database, slowest in (
                ("sqlite", "SQLite", 100.0),
                ("postgresql", "PostgreSQL", 150.0),
            )
            for name, text, most, unit in (
                ("slowest", "slowest page, CPU, large catalog", slowest, "ms"),
                ("heaviest", "heaviest page with stylesheet and script", 100.0, "kB"),
                ("elsewhere", "what pages load from elsewhere", 0, ""),
            )
        ),
    ),
    Measure(
        "vendors",
        vendors.vendors,
        tuple(
            Goal(f"{vendor}-{key}", f"{title}, all entities: {text}", most, unit)
            for vendor, title in (("pagerduty", "PagerDuty"), ("datadog", "Datadog"))
            for key, text, most, unit in (
                ("ratio", "requests ÷ those for 10 of them", 1.0, "x"),
                ("requests", "requests, 50 ms each", 150, ""),
                ("seconds", "a run on SQLite", 15.0, "s"),
                ("cpu", "CPU of the worker", 5.0, "s"),
            )
        ),
    ),
    Measure(
        "history",
        history.history,
        tuple(
            Goal(f"{dialect}-{name}", f"{text}, {database}", most, unit)
            for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
            for name, text, most, unit in (
                ("latest", "latest facts of a custom source, time ÷ with 1 % of it", 1.5, "x"),
                ("page", "a page of an entity's history, time ÷ with 1 % of it", 1.5, "x"),
                ("source-page", "the same of one source", 1.5, "x"),
                ("push-small", "PUT of one entity while history is trimmed ÷ not", 1.2, "x"),
                ("push-many", "PUT of 1,000 entities, p95 ÷ without trimming", 1.2, "x"),
                ("push-facts", "POST of facts about 100 entities, p95 ÷ without", 1.2, "x"),
                ("idle", "a server with all these sources that waits, of a core", 2.0, "%"),
                ("reread", "slowest read while all definitions are read anew", 50.0, "ms"),
            )
        ),
    ),
    Measure(
        "steady",
        steady.steady,
        tuple(
            goal
            for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
            for goal in (
                Goal(f"{dialect}-failed", f"steady load at 70 %: failures, {database}", 0, ""),
                Goal(f"{dialect}-p99", "p99 of the last third ÷ of the first", 1.25, "x"),
                Goal(f"{dialect}-memory", "memory of the last third ÷ of the first", 1.1, "x"),
            )
        ),
    ),
    Measure(
        "overload",
        steady.overload,
        tuple(
            goal
            for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
            for goal in (
                Goal(
                    f"{dialect}-other", f"5 times too much: not 200, 429 or 503, {database}", 0, ""
                ),
                Goal(f"{dialect}-lost", "share of the most that is not answered well", 0.3, "x"),
                Goal(f"{dialect}-p99", "p99 of what is answered well", 4.0, "s"),
                Goal(f"{dialect}-after", "failures right after it", 0, ""),
                Goal(f"{dialect}-recovered", "p99 right after it", 50.0, "ms"),
            )
        ),
    ),
    Measure(
        "check-rules",
        check_rules.check_rules,
        (
            Goal("two", "a check of two comparisons for one entity, CPU", 1.0, "µs"),
            Goal("two-engine", "the same ÷ json-rules-engine, made once", 0.1, "x"),
            Goal("three", "a check of three comparisons for one entity, CPU", 1.0, "µs"),
            Goal("three-engine", "the same ÷ json-rules-engine, made once", 0.1, "x"),
        ),
    ),
    Measure(
        "checks",
        checks.checks,
        tuple(
            Goal(f"{dialect}-{name}", f"{text}, {database}", most, unit)
            for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
            for name, text, most, unit in (
                ("full", "500 checks for 100,000 entities, CPU", 90.0, "s"),
                ("full-memory", "the most memory meanwhile", 400.0, "MB"),
                ("published", "one check published over 100,000, CPU until in effect", 5.0, "s"),
                ("preview", "its preview, CPU", 2.0, "s"),
                ("fact", "50 checks that depend on a row of facts, CPU, of 50 rows", 0.5, "ms"),
                ("fact-alone", "the same of a row that is written alone", 0.5, "ms"),
                ("store", "states and counts of 500 checks, for an entity", 1.024, "kB"),
                ("push", "a push while there are no checks, CPU added", 1.0, "%"),
                ("record", "facts about 20 entities while there are none, CPU added", 1.0, "%"),
            )
        ),
        lasts=True,
    ),
    Measure(
        "large-entities",
        large_entities.large_entities,
        tuple(
            goal
            for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
            for goal in (
                *(
                    Goal(
                        f"{dialect}-{step}",
                        f"{text}: CPU of each, largest n ÷ a tenth, {database}",
                        2.0,
                        "x",
                    )
                    for step, text in large_entities.STEPS.items()
                ),
                Goal(f"{dialect}-healthz", "longest wait for /healthz meanwhile", 500.0, "ms"),
            )
        ),
        lasts=True,
    ),
    Measure(
        "limits",
        limits.limits,
        (
            *(
                goal
                for dialect, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
                for worst in limits.WORST
                for goal in (
                    Goal(
                        f"{dialect}-{worst.key}-lock",
                        f"{worst.text}: another write waits, {database}",
                        *((0.2, "ms") if worst.many else (1.0, "s")),
                    ),
                    Goal(
                        f"{dialect}-{worst.key}-memory",
                        f"{worst.text}: memory, {database}",
                        *((8.0, "kB") if worst.many else (512.0, "MB")),
                    ),
                )
            ),
            *(
                Goal(f"files-{key}", f"{text}: memory", 200.0, "MB")
                for key, text in limits.FILES.items()
            ),
        ),
        lasts=True,
    ),
    Measure(
        "size",
        read_scaling.size,
        tuple(
            Goal(key, f"{text}, CPU, largest catalog ÷ compared", 1.5 if bounded else 100, "x")
            for key, text, bounded in read_scaling.GROWING
        ),
        lasts=True,
    ),
)
