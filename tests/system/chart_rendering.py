"""Renders the chart with Helm, and validates what comes out: run in an environment of its own.

    python chart_rendering.py CHART

Reads a list of values as JSON. For each it writes the documents that the chart makes of them and
what the published schemas of Kubernetes say against them, or why Helm refuses the values.
"""

import json
import sys
from functools import cache

import helm_python as helm  # type: ignore[import-not-found]
import kubernetes_validate  # type: ignore[import-not-found]
import yaml
from kubernetes_validate import utils

# It would read the whole of a version's schemas again for each document.
utils.schema_contents = cache(utils.schema_contents)
# The oldest that the chart is for, and the newest of which there are schemas.
VERSIONS = ("1.27", kubernetes_validate.latest_version().rpartition(".")[0])


def rendered(chart: helm.Chart, values: dict[str, object]) -> dict[str, object]:
    """The documents by their kinds and names, and what is wrong with them."""
    try:
        chart.validate_schema(values)
        texts = chart.render(values, name="fb", namespace="catalog")
    except helm.HelmError as error:
        return {"refused": str(error)}
    documents = [
        document
        for name, text in texts.items()
        if name.endswith(".yaml")
        for document in parsed(text)
    ]
    return {"documents": documents, "problems": [*problems(documents)]}


@cache
def parsed(text: str) -> list[dict[str, object]]:
    """The documents of a file, which most values leave as it is; libyaml reads the others."""
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def problems(documents: list[dict[str, object]]) -> list[str]:
    """What the schemas refuse; they have no objects of other groups."""
    texts = (json.dumps(document) for document in documents)
    return [found for text in texts for version in VERSIONS if (found := problem(text, version))]


@cache
def problem(text: str, version: str) -> str:
    """What one schema refuses in a document, most of which are alike; empty if nothing."""
    document = json.loads(text)
    if document["apiVersion"].startswith("monitoring."):
        return ""
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{version} {document['kind']}: {error.path} {error.message}"
    return ""


def main() -> None:
    """Answer for each of the values."""
    path = sys.argv[1]
    chart = helm.Chart.load(path)
    answers = [rendered(chart, values) for values in json.load(sys.stdin)]
    lint = [one["error"] for one in helm.lint(path)["messages"] if one["severity"] > 1]
    json.dump({"versions": VERSIONS, "lint": lint, "answers": answers}, sys.stdout)


main()
