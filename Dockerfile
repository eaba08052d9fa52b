FROM python:3.11-slim-bookworm AS build
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/factbook
# The locked packages come first, so that a change of the source does not install them again.
COPY requirements/runtime.lock requirements/
RUN /opt/factbook/bin/pip install --require-hashes -r requirements/runtime.lock
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY src src
RUN pip wheel --no-deps --wheel-dir dist . \
    && /opt/factbook/bin/pip install --no-deps dist/*.whl

FROM python:3.11-slim-bookworm
# The integration of Git runs it.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
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
