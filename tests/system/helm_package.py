"""`helm package`, done by Helm's own library: run in an environment that has it.

python helm_package.py package CHART --destination FOLDER --version V --app-version V
"""

import argparse

import helm_python as helm  # type: ignore[import-not-found]


def main() -> None:
    """Write the archive."""
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["package"])
    parser.add_argument("chart")
    parser.add_argument("--destination", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--app-version", required=True)
    given = parser.parse_args()
    helm.package(
        given.chart,
        destination=given.destination,
        version=given.version,
        app_version=given.app_version,
    )


main()
