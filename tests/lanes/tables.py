"""The system tests that each changed path needs, and those that always run."""

from typing import Final

# The row of a path whose change runs every system test.
EVERYTHING: Final = ("tests/",)
# The row of a path that no system test reads.
NOTHING: Final = ()

_BROWSER = ("tests/browser/",)
_ACCESS = (
    "tests/api/test_role_matrix.py",
    "tests/web/test_role_pages.py",
    "tests/system/test_secrets.py",
)
_SIGN_IN = (
    "tests/browser/test_agent_hosts.py",
    "tests/browser/test_openid.py",
    "tests/browser/test_signing_in_agents.py",
    "tests/system/test_openid_provider.py",
)
_AGENTS = (
    "tests/browser/test_agent_hosts.py",
    "tests/browser/test_signing_in_agents.py",
    "tests/contracts/test_agent_servers.py",
    "tests/contracts/test_clients.py",
    "tests/contracts/test_conformance.py",
    "tests/contracts/test_hosts.py",
)
_CATALOG = (
    "tests/contracts/test_catalog_",
    "tests/system/test_crash.py",
    "tests/system/test_large_paging.py",
)
_HISTORIES = ("tests/model/",)
_CHECKS = (
    "tests/browser/test_figures.py",
    "tests/browser/test_fixing.py",
    "tests/contracts/test_rules_engine.py",
    "tests/contracts/test_tech_insights_client.py",
    "tests/deploy/test_pipelines.py",
    "tests/system/test_checks_attack.py",
)
_COLLECTION = (
    "tests/collection/test_day.py",
    "tests/system/test_collecting_",
    "tests/system/test_every_vendor.py",
)
_VENDORS = (
    "tests/system/test_day_of_vendors.py",
    "tests/system/test_every_vendor.py",
)
_GITHUB = (
    *_VENDORS,
    "tests/integrations/github/",
    "tests/system/test_collecting_server.py",
    "tests/system/test_importing_",
)
_GIT = (
    "tests/system/test_collecting_git.py",
    "tests/system/test_git_garbage.py",
)
_IMPORTERS = (
    "tests/browser/test_importing.py",
    "tests/contracts/test_aws.py",
    "tests/contracts/test_catalog_files.py",
    "tests/contracts/test_kubernetes.py",
    "tests/system/test_importing_",
)
_EVENTS = (
    "tests/browser/test_live.py",
    "tests/system/test_many_machines.py",
    "tests/system/test_postgresql_restarts.py",
    "tests/system/test_webhook_crash.py",
)
_HTTP = (
    "tests/browser/test_weight.py",
    "tests/contracts/test_conformance.py",
    "tests/system/test_live_proxies.py",
    "tests/system/test_postgresql_faults.py",
    "tests/system/test_proxies.py",
    "tests/system/test_secrets.py",
    "tests/system/test_slow_download.py",
)
_DATABASES = (
    *_HISTORIES,
    "tests/storage/test_silent_postgresql.py",
    "tests/system/test_backups.py",
    "tests/system/test_crash.py",
    "tests/system/test_killed_migration.py",
    "tests/system/test_large_paging.py",
    "tests/system/test_many_machines.py",
    "tests/system/test_postgresql_",
    "tests/system/test_read_replica.py",
    "tests/system/test_replica_lag.py",
    "tests/system/test_rolling_upgrade.py",
    "tests/system/test_sqlite_disk.py",
    "tests/system/test_unconfirmed_commits.py",
)
_DEPLOYMENT = (
    "tests/deploy/test_deploy.py",
    "tests/system/test_chart.py",
    "tests/system/test_image.py",
)
_PAGES_OF_DOCS = ("tests/docs/test_examples.py",)
_REST = ("tests/contracts/test_schemathesis.py",)

# A changed path has the row of its longest prefix here. A row names system tests by prefix. Python
# modules of the tests and benchmarks that tests import have no row: their importers run.
SYSTEM: Final[dict[str, tuple[str, ...]]] = {
    # What every room needs.
    "src/factbook/__init__.py": EVERYTHING,
    "src/factbook/__main__.py": EVERYTHING,
    "src/factbook/app.py": EVERYTHING,
    "src/factbook/backend.py": EVERYTHING,
    "src/factbook/clock.py": EVERYTHING,
    "src/factbook/asgi.py": NOTHING,
    "src/factbook/errors.py": EVERYTHING,
    "src/factbook/json_parts.py": _CATALOG,
    "src/factbook/process.py": EVERYTHING,
    "src/factbook/shutdown.py": EVERYTHING,
    "src/factbook/worker.py": EVERYTHING,
    "src/factbook/py.typed": NOTHING,
    # The rooms.
    "src/factbook/api/": (*_REST, *_ACCESS),
    "src/factbook/api/catalog.py": (*_REST, *_CATALOG, *_ACCESS, *_HISTORIES),
    "src/factbook/api/entity_validation.py": (*_REST, *_CATALOG),
    "src/factbook/api/check_parameters.py": (*_REST, *_CHECKS, *_ACCESS),
    "src/factbook/api/community.py": (*_REST, *_CHECKS, *_ACCESS),
    "src/factbook/api/data_sources.py": (
        *_REST,
        *_ACCESS,
        "tests/contracts/test_tech_insights_client.py",
    ),
    "src/factbook/api/definitions.py": (*_REST, *_CHECKS, *_ACCESS),
    "src/factbook/api/webhooks.py": (*_REST, *_CHECKS, *_ACCESS, *_EVENTS),
    "src/factbook/api/events.py": (*_REST, *_EVENTS, *_ACCESS),
    "src/factbook/api/facts.py": (*_REST, *_ACCESS, "tests/contracts/test_tech_insights_client.py"),
    "src/factbook/api/importers.py": (*_REST, *_IMPORTERS, *_ACCESS),
    "src/factbook/api/mcp.py": (*_AGENTS, *_ACCESS),
    "src/factbook/api/oauth.py": (*_SIGN_IN, *_AGENTS, *_ACCESS),
    "src/factbook/api/openapi.py": (*_REST, "tests/contracts/test_catalog_openapi.py"),
    "src/factbook/api/parameters.py": (*_REST, "tests/contracts/test_catalog_openapi.py"),
    "src/factbook/api/results.py": (*_REST, *_CHECKS, *_ACCESS),
    "src/factbook/api/push.py": (*_REST, *_ACCESS, *_HISTORIES, "tests/system/test_crash.py"),
    "src/factbook/api/scim.py": (*_ACCESS, "tests/contracts/test_scim.py"),
    "src/factbook/audit/": _ACCESS,
    "src/factbook/auth/": (*_ACCESS, *_SIGN_IN, "tests/contracts/test_scim.py"),
    "src/factbook/catalog/": (*_CATALOG, *_HISTORIES, "tests/browser/test_journey.py"),
    "src/factbook/checks/": _CHECKS,
    "src/factbook/cli/": (
        *_PAGES_OF_DOCS,
        "tests/deploy/test_deploy.py",
        "tests/system/test_backups.py",
        "tests/system/test_chart.py",
        "tests/system/test_killed_migration.py",
        "tests/system/test_secrets.py",
    ),
    "src/factbook/cli/check_files.py": (
        *_PAGES_OF_DOCS,
        "tests/deploy/test_pipelines.py",
    ),
    "src/factbook/cli/check_previews.py": (*_PAGES_OF_DOCS, "tests/deploy/test_pipelines.py"),
    "src/factbook/cli/checks.py": (*_PAGES_OF_DOCS, "tests/deploy/test_pipelines.py"),
    "src/factbook/cli/imports.py": (
        *_PAGES_OF_DOCS,
        *_IMPORTERS,
        "tests/contracts/test_yaml.py",
    ),
    "src/factbook/cli/pipelines.py": (*_PAGES_OF_DOCS, "tests/deploy/test_pipelines.py"),
    "src/factbook/cli/source_plans.py": (*_PAGES_OF_DOCS, *_COLLECTION),
    "src/factbook/cli/sources.py": (*_PAGES_OF_DOCS, *_COLLECTION),
    "src/factbook/client/": _PAGES_OF_DOCS,
    "src/factbook/collection/": (*_COLLECTION, "tests/system/test_many_machines.py"),
    "src/factbook/datasources/": (
        *_COLLECTION,
        *_PAGES_OF_DOCS,
        "tests/browser/test_journey.py",
        "tests/system/test_secrets.py",
    ),
    "src/factbook/definitions/": (*_CHECKS, "tests/browser/test_questions.py"),
    "src/factbook/events/": _EVENTS,
    "src/factbook/facts/": (
        *_COLLECTION,
        "tests/contracts/test_tech_insights_client.py",
        "tests/system/test_checks_attack.py",
        "tests/system/test_day_of_vendors.py",
        "tests/system/test_prometheus.py",
    ),
    "src/factbook/http/": _HTTP,
    "src/factbook/importers/": _IMPORTERS,
    "src/factbook/importers/aws.py": ("tests/contracts/test_aws.py",),
    "src/factbook/importers/kubernetes.py": ("tests/contracts/test_kubernetes.py",),
    "src/factbook/importers/ldif.py": NOTHING,
    "src/factbook/integrations/": (*_VENDORS, *_GITHUB, *_GIT, "tests/system/test_prometheus.py"),
    "src/factbook/integrations/datadog/": _VENDORS,
    "src/factbook/integrations/git/": (*_GIT, "tests/system/test_every_vendor.py"),
    "src/factbook/integrations/gitea/": _VENDORS,
    "src/factbook/integrations/github/": _GITHUB,
    "src/factbook/integrations/gitlab/": _VENDORS,
    "src/factbook/integrations/pagerduty/": _VENDORS,
    "src/factbook/integrations/prometheus/": (*_VENDORS, "tests/system/test_prometheus.py"),
    "src/factbook/integrations/snyk/": _VENDORS,
    "src/factbook/invisible.py": (*_AGENTS, *_PAGES_OF_DOCS),
    "src/factbook/observability/": (
        "tests/system/test_alerts.py",
        "tests/system/test_every_vendor.py",
        "tests/system/test_many_machines.py",
        "tests/system/test_replica_lag.py",
        "tests/system/test_secrets.py",
        "tests/system/test_slow_download.py",
    ),
    "src/factbook/operations/": (
        *_PAGES_OF_DOCS,
        "tests/system/test_backups.py",
        "tests/system/test_crash.py",
        "tests/system/test_doctor.py",
        "tests/system/test_many_machines.py",
        "tests/system/test_postgresql_",
        "tests/system/test_proxies.py",
        "tests/system/test_random_kills.py",
        "tests/system/test_read_replica.py",
        "tests/system/test_rolling_upgrade.py",
    ),
    "src/factbook/operations/backups.py": (
        *_PAGES_OF_DOCS,
        "tests/system/test_backups.py",
        "tests/system/test_sqlite_disk.py",
    ),
    "src/factbook/operations/doctor/": (
        *_PAGES_OF_DOCS,
        "tests/system/test_doctor.py",
        "tests/system/test_read_replica.py",
    ),
    "src/factbook/outbound/": (
        *_IMPORTERS,
        *_SIGN_IN,
        *_VENDORS,
        "tests/system/test_collecting_",
        "tests/system/test_secrets.py",
        "tests/system/test_webhook_crash.py",
    ),
    "src/factbook/outbound/git.py": _GIT,
    "src/factbook/text_files.py": (
        *_CATALOG,
        "tests/contracts/test_catalog_files.py",
        "tests/contracts/test_yaml.py",
    ),
    "src/factbook/safe_yaml.py": (
        "tests/contracts/test_catalog_files.py",
        "tests/contracts/test_yaml.py",
    ),
    "src/factbook/scheduling/": (
        *_COLLECTION,
        "tests/system/test_importing_server.py",
        "tests/system/test_many_machines.py",
    ),
    "src/factbook/schemas/": (
        *_REST,
        *_PAGES_OF_DOCS,
        "tests/contracts/test_catalog_",
        "tests/contracts/test_tech_insights_client.py",
    ),
    "src/factbook/scim/": (
        "tests/api/test_role_matrix.py",
        "tests/contracts/test_scim.py",
        "tests/scim/test_large_groups.py",
    ),
    "src/factbook/settings/": (
        *_DEPLOYMENT,
        *_PAGES_OF_DOCS,
        "tests/system/test_doctor.py",
        "tests/system/test_every_vendor.py",
        "tests/system/test_proxies.py",
        "tests/system/test_secrets.py",
    ),
    "src/factbook/storage/": _DATABASES,
    "src/factbook/storage/migrations/": EVERYTHING,
    "src/factbook/telemetry/": (
        "tests/system/test_every_vendor.py",
        "tests/system/test_secrets.py",
    ),
    "src/factbook/tools/": (*_AGENTS, *_ACCESS, *_PAGES_OF_DOCS),
    "src/factbook/user_patterns.py": ("tests/contracts/test_rules_engine.py", *_VENDORS),
    "src/factbook/web/": (
        *_BROWSER,
        "tests/system/test_live_proxies.py",
        "tests/system/test_secrets.py",
        "tests/web/test_role_pages.py",
    ),
    "src/factbook/webhooks/": (*_EVENTS, "tests/system/test_secrets.py"),
    # What is deployed, packaged and released.
    ".dockerignore": ("tests/system/test_image.py",),
    "Dockerfile": (
        *_DEPLOYMENT,
        "tests/system/test_platforms.py",
        "tests/system/test_release.py",
    ),
    "deploy/": (*_DEPLOYMENT, "tests/system/test_proxies.py", "tests/system/test_release.py"),
    "deploy/chart/": (*_DEPLOYMENT, "tests/system/test_release.py"),
    "deploy/pipelines/": (*_PAGES_OF_DOCS, "tests/deploy/test_pipelines.py"),
    "deploy/prometheus/": ("tests/system/test_alerts.py", "tests/system/test_chart.py"),
    "deploy/systemd/": ("tests/deploy/test_deploy.py", "tests/system/test_image.py"),
    "examples/": (*_PAGES_OF_DOCS, *_BROWSER),
    "examples/source-plugin/": _PAGES_OF_DOCS,
    "mkdocs.yml": ("tests/system/test_release.py",),
    "pyproject.toml": EVERYTHING,
    "requirements/": EVERYTHING,
    "requirements/audit.json": NOTHING,
    "scripts/": ("tests/system/test_image.py", "tests/system/test_release.py"),
    "scripts/install-system": EVERYTHING,
    ".github/": ("tests/system/test_platforms.py", "tests/system/test_release.py"),
    ".github/dependabot.yml": NOTHING,
    # The lanes themselves.
    ".ci/": EVERYTHING,
    ".ci/full": NOTHING,
    "Makefile": EVERYTHING,
    # Texts.
    ".editorconfig": NOTHING,
    ".gitattributes": ("tests/system/test_release.py",),
    ".gitignore": NOTHING,
    ".pre-commit-config.yaml": NOTHING,
    "CHANGELOG.md": NOTHING,
    "AGENTS.md": NOTHING,
    "ARCHITECTURE.md": NOTHING,
    "CONTRIBUTING.md": NOTHING,
    "LICENSE": NOTHING,
    "README.md": NOTHING,
    "RELEASING.md": NOTHING,
    "SECURITY.md": NOTHING,
    "server.json": NOTHING,
    "docs/": _PAGES_OF_DOCS,
    "docs/decisions/": NOTHING,
    "docs/images/": NOTHING,
    # Benchmarks and tests, as far as nothing imports them.
    "bench/": NOTHING,
    "tests/": NOTHING,
    "tests/browser/": _BROWSER,
    "tests/browser/screenshots.py": NOTHING,
    "tests/contracts/": ("tests/contracts/", "tests/browser/test_signing_in_agents.py"),
    "tests/contracts/host": ("tests/contracts/test_hosts.py",),
    "tests/contracts/package-lock.json": EVERYTHING,
    "tests/data/": ("tests/contracts/test_schemathesis.py", "tests/system/test_curl.py"),
    "tests/docs/": _PAGES_OF_DOCS,
    "tests/fakes/github/": _GITHUB,
    "tests/lanes/": EVERYTHING,
    "tests/model/": _HISTORIES,
    "tests/storage/schemas/": ("tests/system/test_killed_migration.py",),
    "tests/system/": ("tests/system/",),
    "tests/system/chart_rendering.py": ("tests/system/test_chart.py",),
    "tests/system/helm_package.py": ("tests/system/test_release.py",),
    "tests/system/image_export.py": ("tests/system/test_release.py",),
    "tests/system/noon.py": ("tests/system/test_every_vendor.py",),
    "tests/system/start_database": ("tests/system/test_image.py",),
    "tests/system/units_image/": ("tests/system/test_image.py",),
}

# Any change could break these. They use every interface of the service once, and most ways of
# deploying it; together they take three minutes.
SMOKE: Final = (
    # Serving from the wheel, pushes and tools. A change of what the image adds runs its tests.
    "tests/system/test_wheel.py",
    "tests/system/test_curl.py",
    "tests/contracts/test_clients.py::test_the_python_client_lists_and_calls_every_tool",
    # Pages in Chromium.
    "tests/browser/test_journey.py",
    # An upgrade, and kills in the middle of work.
    "tests/system/test_rolling_upgrade.py",
    "tests/system/test_crash.py",
    "tests/system/test_backups.py::test_a_restore_that_is_killed_leaves_the_old_database_or_the_new_one",
    "tests/system/test_webhook_crash.py::test_every_event_arrives_though_processes_are_killed_while_they_send[postgresql]",
    "tests/system/test_postgresql_restarts.py::test_clients_see_whole_answers_or_503_while_postgresql_is_restarted",
    # Facts and entities from elsewhere.
    "tests/system/test_collecting_server.py",
    "tests/system/test_importing_server.py::test_of_two_processes_of_a_server_one_imports",
)

# The tests of a path are in the folder of the same name, or here.
NEARBY: Final[dict[str, str]] = {
    "src/factbook/app.py": "tests/test_serve.py",
    "src/factbook/audit/": "tests/auth/",
    "src/factbook/backend.py": "tests/test_serve.py",
    "src/factbook/definitions/": "tests/checks/",
    "src/factbook/process.py": "tests/test_serve.py",
    "src/factbook/schemas/": "tests/api/",
    "src/factbook/telemetry/": "tests/observability/",
    "src/factbook/worker.py": "tests/collection/",
    ".ci/": "tests/lanes/",
    ".github/": "tests/deploy/",
    "Dockerfile": "tests/deploy/",
    "Makefile": "tests/deploy/",
    "README.md": "tests/docs/",
    "deploy/": "tests/deploy/",
    "docs/": "tests/docs/",
    "examples/": "tests/docs/",
    "mkdocs.yml": "tests/docs/",
    "pyproject.toml": "tests/supply/",
    "requirements/": "tests/supply/",
    "scripts/": "tests/deploy/",
}

# The slowest files, slowest first, so that none of them runs alone at the end.
LONGEST: Final = (
    "tests/system/test_image.py",
    "tests/browser/test_accessibility.py",
    "tests/browser/test_accessibility_viewers.py",
    "tests/browser/test_accessibility_administrators.py",
    "tests/contracts/test_schemathesis.py",
    "tests/system/test_release.py",
    "tests/collection/test_day.py",
    "tests/model/test_histories.py",
    "tests/system/test_collecting_kills.py",
    "tests/system/test_webhook_crash.py",
    "tests/system/test_day_of_vendors.py",
    "tests/contracts/test_hosts.py",
    "tests/system/test_random_kills.py",
    "tests/system/test_postgresql_faults.py",
    "tests/system/test_postgresql_restarts.py",
    "tests/system/test_read_replica.py",
    "tests/contracts/test_catalog_model.py",
    "tests/system/test_secrets.py",
    "tests/system/test_collecting_crash.py",
    "tests/model/test_disturbed_histories.py",
    "tests/browser/test_signing_in_agents.py",
    "tests/system/test_sqlite_disk.py",
    "tests/system/test_importing_server.py",
    "tests/browser/test_keyboard.py",
    "tests/web/test_hostile_pages.py",
    "tests/system/test_killed_migration.py",
    "tests/system/test_chart.py",
    "tests/system/test_large_paging.py",
    "tests/docs/test_examples.py",
    "tests/browser/test_agent_hosts.py",
    "tests/browser/test_live.py",
    "tests/browser/test_weight.py",
    "tests/browser/test_questions.py",
    "tests/browser/test_journey.py",
    "tests/system/test_checks_attack.py",
    "tests/system/test_many_machines.py",
    "tests/contracts/test_conformance.py",
)
