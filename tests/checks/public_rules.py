"""Forty rules that others have published for json-rules-engine, as data, with where they stand.

Each comes with values that its facts can have. Their texts and programs are not taken over; what
the engine gets from programs is a plain fact here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

JRE: Final = "https://github.com/CacheControl/json-rules-engine/blob/master/"
CP: Final = "https://github.com/backstage/community-plugins/blob/main/workspaces/tech-insights/"
JSONFC: Final = f"{CP}plugins/tech-insights-backend-module-jsonfc/README.md"
BACKEND: Final = f"{CP}plugins/tech-insights-backend/README.md"
ROADIE: Final = "https://roadie.io/docs/tech-insights/checks/"

BOOLEANS: Final = (True, False)


class PublicRule(NamedTuple):
    """The conditions of a rule, the values to try of each fact, and conditions that it names."""

    place: str
    conditions: Mapping[str, Any]
    facts: Mapping[str, Sequence[Any]]
    shared: Mapping[str, Any] = {}


def leaf(fact: str, operator: str, value: Any, **members: Any) -> dict[str, Any]:
    return {"fact": fact, "operator": operator, "value": value, **members}


def every(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"all": list(parts)}


def some(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"any": list(parts)}


def is_true(*facts: str) -> dict[str, Any]:
    return every(*(leaf(fact, "equal", True) for fact in facts))


def flags(*facts: str) -> dict[str, Sequence[Any]]:
    return dict.fromkeys(facts, BOOLEANS)


_ACCOUNT: Final = "account-information"
_ACCOUNTS: Final = (
    {"company": "microsoft", "status": "active", "ptoDaysTaken": ["2016-12-25"]},
    {"company": "microsoft", "status": "terminated", "ptoDaysTaken": []},
    {"company": "apple", "status": "paid-leave", "ptoDaysTaken": ["2016-12-24"]},
)
_PRICES: Final = ({"price": 50}, {"price": 101}, {"price": 100})
_SCORES: Final = ({"initials": "DOG", "score": 968}, {"initials": "AAA", "score": 500})
_PLACES: Final = ({"gps": {"value": [-30, -20]}}, {"gps": {"value": [-10, -20]}})
_FOULS: Final = (4, 5, 6)
_SHARED: Final = {"screwdriverAficionado": is_true("drinksOrangeJuice", "enjoysVodka")}
_SOCIAL: Final = flags("drinksOrangeJuice", "enjoysVodka", "isSociable")
_STAGES: Final = ["dev", "staging", "load", "prod"]

RULES: Final = (
    # json-rules-engine: its documentation and examples.
    PublicRule(
        f"{JRE}examples/01-hello-world.js", is_true("displayMessage"), flags("displayMessage")
    ),
    PublicRule(
        f"{JRE}examples/02-nested-boolean-logic.js",
        some(
            every(
                leaf("gameDuration", "equal", 40),
                leaf("personalFoulCount", "greaterThanInclusive", 5),
            ),
            every(
                leaf("gameDuration", "equal", 48),
                leaf("personalFoulCount", "greaterThanInclusive", 6),
            ),
        ),
        {"gameDuration": (40, 48, 20), "personalFoulCount": _FOULS},
    ),
    PublicRule(
        f"{JRE}examples/03-dynamic-facts.js",
        every(
            leaf(_ACCOUNT, "equal", "microsoft", path="$.company"),
            leaf(_ACCOUNT, "in", ["active", "paid-leave"], path="$.status"),
            leaf(_ACCOUNT, "contains", "2016-12-25", path="$.ptoDaysTaken"),
        ),
        {_ACCOUNT: _ACCOUNTS},
    ),
    PublicRule(
        f"{JRE}examples/04-fact-dependency.js",
        every(
            leaf(_ACCOUNT, "equal", "microsoft", path="$.company"),
            leaf(_ACCOUNT, "equal", "terminated", path="$.status"),
        ),
        {_ACCOUNT: _ACCOUNTS},
    ),
    PublicRule(
        f"{JRE}examples/05-optimizing-runtime-with-fact-priorities.js",
        every(leaf(_ACCOUNT, "equal", True), leaf("date", "lessThan", 1467331200000)),
        {_ACCOUNT: BOOLEANS, "date": (1467331199999, 1467331200000)},
    ),
    PublicRule(
        f"{JRE}examples/07-rule-chaining.js",
        is_true("screwdriverAficionado", "isSociable"),
        flags("screwdriverAficionado", "isSociable"),
    ),
    PublicRule(
        f"{JRE}examples/08-fact-comparison.js",
        every(
            leaf(
                "account",
                "greaterThanInclusive",
                {"fact": "product", "path": "$.price"},
                path="$.balance",
            )
        ),
        {"account": ({"balance": 500}, {"balance": 30}, {"balance": 50}), "product": _PRICES},
    ),
    PublicRule(
        f"{JRE}examples/09-rule-results.js",
        every(leaf("athlete", "equal", True), leaf("GPA", "greaterThanInclusive", 3.5)),
        {"athlete": BOOLEANS, "GPA": (3.9, 3.5, 3.1, 4)},
    ),
    PublicRule(
        f"{JRE}examples/10-condition-sharing.js",
        every({"condition": "screwdriverAficionado"}, leaf("isSociable", "equal", True)),
        _SOCIAL,
        _SHARED,
    ),
    PublicRule(
        f"{JRE}examples/10-condition-sharing.js",
        every({"not": {"condition": "screwdriverAficionado"}}, leaf("isSociable", "equal", True)),
        _SOCIAL,
        _SHARED,
    ),
    PublicRule(
        f"{JRE}examples/11-using-facts-in-events.js",
        every(leaf("score", "lessThanInclusive", {"fact": "best", "path": "$.score"})),
        {"score": (968, 500, 1000), "best": _SCORES},
    ),
    PublicRule(
        f"{JRE}examples/11-using-facts-in-events.js",
        some(leaf("score", "greaterThan", {"fact": "best", "path": "$.score"})),
        {"score": (968, 500, 1000), "best": _SCORES},
    ),
    PublicRule(
        f"{JRE}docs/operators.md",
        every(leaf("tags", "someFact:in", _STAGES)),
        {"tags": (["dev", "prod"], ["dev", "deleted"], ["deleted"], [])},
    ),
    PublicRule(
        f"{JRE}docs/operators.md",
        every(leaf("tags", "not:contains", "deleted"), leaf("stage", "swap:contains", _STAGES)),
        {"tags": (["dev", "prod"], ["dev", "deleted"], []), "stage": ("dev", "none")},
    ),
    PublicRule(
        f"{JRE}docs/rules.md#basic-conditions",
        every(leaf("my-fact", "lessThanInclusive", 1)),
        {"my-fact": (0, 1, 2, 1.5)},
    ),
    PublicRule(
        f"{JRE}docs/rules.md#condition-helpers-path",
        every(leaf("product-price", "greaterThan", 100, path="$.price")),
        {"product-price": _PRICES},
    ),
    PublicRule(
        f"{JRE}docs/rules.md#comparing-facts",
        every(leaf("product-price", "greaterThan", {"fact": "budget"}, path="$.price")),
        {"product-price": _PRICES, "budget": (50, 100, 200)},
    ),
    PublicRule(
        f"{JRE}docs/rules.md#boolean-expressions-all-any-and-not",
        some(
            leaf("one", "equal", 1),
            leaf("two", "notEqual", 2),
            {"not": every(leaf("three", "in", ["a"]), leaf("four", "notIn", ["b"]))},
        ),
        {"one": (1, 2), "two": (2, 3), "three": ("a", "b"), "four": ("a", "b")},
    ),
    PublicRule(
        f"{JRE}docs/walkthrough.md",
        every(
            leaf("company-employees", "contains", "joe"),
            leaf("company-employees", "doesNotContain", "jane"),
        ),
        {"company-employees": (["joe"], ["joe", "jane"], ["jane"], [])},
    ),
    PublicRule(
        f"{JRE}test/engine-fact.test.js",
        every(
            leaf("age", "lessThanInclusive", 25),
            leaf("age", "greaterThanInclusive", 20),
            leaf("age", "notIn", [21, 22]),
        ),
        {"age": (19, 20, 21, 24, 25, 26)},
    ),
    # The checks of Backstage's Tech Insights.
    PublicRule(JSONFC, is_true("hasGroupOwner"), flags("hasGroupOwner")),
    PublicRule(
        JSONFC,
        every(leaf("examplenumberfact", "greaterThanInclusive", 2)),
        {"examplenumberfact": (1, 2, 3)},
    ),
    PublicRule(BACKEND, is_true("hasTitle"), flags("hasTitle")),
    PublicRule(
        BACKEND,
        is_true("hasAnnotationBackstageIoTechdocsRef"),
        flags("hasAnnotationBackstageIoTechdocsRef"),
    ),
    PublicRule(
        "https://github.com/RoadieHQ/backstage/blob/master/plugins/tech-insights-backend/",
        every(
            leaf("examplenumberfact", "greaterThanInclusive", 2),
            leaf("examplestringfact", "equal", "stringy"),
            leaf("examplefloatfact", "greaterThanInclusive", 0.2),
            leaf("examplebooleanfact", "equal", False),
        ),
        {
            "examplenumberfact": (1, 2),
            "examplestringfact": ("stringy", "other"),
            "examplefloatfact": (0.1, 0.2),
            "examplebooleanfact": BOOLEANS,
        },
    ),
    PublicRule(
        "a Backstage of GitHub: catalogYAMLChecks",
        is_true("hasGroupOwner", "hasDescription"),
        flags("hasGroupOwner", "hasDescription"),
    ),
    PublicRule(
        "a Backstage of GitHub: staleRepoCheck",
        every(leaf("msSinceLastCommit", "lessThan", 15552000000)),
        {"msSinceLastCommit": (1, 15552000000, 15552000001)},
    ),
    PublicRule(
        "a Backstage of GitHub: apiDefinitionCheck",
        is_true("hasDefinition", "hasReadme"),
        flags("hasDefinition", "hasReadme"),
    ),
    PublicRule(
        "a Backstage of GitHub: repoNotArchivedCheck",
        every(leaf("githubIsArchived", "equal", False)),
        flags("githubIsArchived"),
    ),
    PublicRule(
        "a Backstage of GitHub: db-response-time-healthy",
        every(leaf("dbResponseTime", "lessThanInclusive", 200)),
        {"dbResponseTime": (0, 200, 200.5)},
    ),
    PublicRule(
        "a Backstage of GitHub: db-connection-active",
        is_true("dbConnectionStatus"),
        flags("dbConnectionStatus"),
    ),
    PublicRule(
        "a Backstage of GitHub: jevReadinessEvidence",
        every(
            leaf("evaluationStatus", "equal", "evaluated"), leaf("evidenceStatus", "equal", "pass")
        ),
        {
            "evaluationStatus": ("evaluated", "not-evaluated", "error"),
            "evidenceStatus": ("pass", "review"),
        },
    ),
    PublicRule(
        "a Backstage of GitHub: golden-path-compliance",
        is_true(
            "has-resource-limits", "has-ingress-tls", "has-multiple-replicas", "has-monitoring"
        ),
        flags("has-resource-limits", "has-ingress-tls", "has-multiple-replicas", "has-monitoring"),
    ),
    PublicRule(
        ROADIE, every(leaf("lowSeverityIssues", "lessThan", 4)), {"lowSeverityIssues": (3, 4, 5)}
    ),
    # Other products that use the engine.
    PublicRule(
        "a device dashboard of GitHub",
        every(
            leaf("properties", "greaterThanInclusive", -40, path="$.gps.value[0]"),
            leaf("properties", "lessThanInclusive", -18, path="$.gps.value[0]"),
            leaf("properties", "greaterThanInclusive", -40, path="$.gps.value[1]"),
            leaf("properties", "lessThanInclusive", -18, path="$['gps']['value'][1]"),
        ),
        {"properties": _PLACES},
    ),
    PublicRule(
        "a shop of GitHub: applyCouponRule",
        every(
            leaf("dateofApplication", "greaterThanInclusive", 1469605500000),
            leaf("dateofApplication", "lessThanInclusive", 1596181500000),
            leaf("usageCount", "lessThanInclusive", 5),
            leaf("userPhone", "notIn", ["8806458310"]),
        ),
        {
            "dateofApplication": (1469605499999, 1500000000000, 1596181500001),
            "usageCount": (5, 6),
            "userPhone": ("8806458310", "8806458311"),
        },
    ),
    PublicRule(
        "a sensor service of GitHub",
        some(
            every(
                leaf("temperature", "greaterThanInclusive", 10),
                leaf("humidity", "lessThanInclusive", 50),
            )
        ),
        {"temperature": (9.5, 10, 11), "humidity": (50, 50.1)},
    ),
    PublicRule(
        "a lender of GitHub",
        every(
            some(
                leaf("experiments", "contains", "Credit-Experiment-V1"),
                leaf("experiment_id", "in", [107]),
            ),
            leaf("risk_grade", "in", ["A"]),
            leaf("partner_type", "in", ["DSA"]),
            leaf("has_green_rag_dsa", "equal", True),
        ),
        {
            "experiments": (["Credit-Experiment-V1"], []),
            "experiment_id": (107, 108),
            "risk_grade": ("A", "B"),
            "partner_type": ("DSA", "other"),
            "has_green_rag_dsa": BOOLEANS,
        },
    ),
    PublicRule(
        "a family benefit of GitHub",
        every(
            leaf("age", "greaterThanInclusive", 18),
            leaf("age", "lessThanInclusive", 25),
            leaf("isStudent", "notEqual", True),
            leaf("isJobSeeker", "notEqual", True),
            leaf("isInTraining", "notEqual", True),
        ),
        {"age": (17, 18, 25, 26), **flags("isStudent", "isJobSeeker", "isInTraining")},
    ),
    PublicRule(
        "a teachers' exchange of GitHub",
        every(
            leaf("qualifications", "contains", "B.Ed"),
            leaf("experienceYears", "greaterThanInclusive", 2),
            leaf("expectedSalary", "lessThanInclusive", 50000),
        ),
        {
            "qualifications": (["B.Ed"], ["M.Ed"]),
            "experienceYears": (1.5, 2),
            "expectedSalary": (50000, 50001),
        },
    ),
)
