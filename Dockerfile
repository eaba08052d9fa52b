# Both stages have this one. The digest is that of the index of all platforms; how to renew it is
# written in docs/how-to/deploy.md.
ARG BASE=python:3.13.15-slim-bookworm@sha256:2325bb286ec344af3e5898cc224b5844e2707ac6e26b1632516fd3edc84a5e26

FROM ${BASE} AS build
WORKDIR /build
# A package without a wheel would be built with whatever its author asks for.
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ONLY_BINARY=:all:
COPY requirements/build.lock requirements/
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes -r requirements/build.lock
# The locked packages come first, so that a change of the source does not install them again. What
# runs needs no installer.
# "workers" has what workers share their work with, "traces" also what traces are sent with;
# "runtime" has neither.
ARG LOCK=workers
COPY requirements/${LOCK}.lock requirements/
RUN python -m venv --without-pip /opt/factbook \
    && PIP_PYTHON=/opt/factbook /opt/build/bin/pip install --require-hashes -r requirements/${LOCK}.lock
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY src src
COPY docs docs
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && PIP_PYTHON=/opt/factbook /opt/build/bin/pip install --no-deps dist/*.whl

FROM ${BASE}
# The integration of Git runs it.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
RUN useradd --system --uid 10001 factbook && install -d -o factbook /data
COPY --from=build /opt/factbook /opt/factbook
ENV PATH=/opt/factbook/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    FACTBOOK_DATABASE_URL=sqlite:////data/factbook.db
USER factbook
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["factbook", "serve", "--host", "0.0.0.0"]
