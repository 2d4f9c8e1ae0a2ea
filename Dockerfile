# syntax=docker/dockerfile:1
# Any image with Python 3.11 or later and its module venv. `make image` names it by the digest that it has pulled.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
RUN python3 -m venv /venv
COPY requirements/requirements.txt /
RUN /venv/bin/python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /requirements.txt
COPY . /app
RUN /venv/bin/python -m compileall -q /app

FROM ${BASE}
# With tens of thousands of Tenants, glibc's malloc takes a sixth of the time of a create (docs/performance.md). The name
# without a directory is right for any architecture. A base without apt keeps its own malloc.
ARG MALLOC=jemalloc
RUN if [ "$MALLOC" = jemalloc ] && command -v apt-get >/dev/null; then \
        apt-get update -qq && apt-get install -qq --no-install-recommends libjemalloc2 && rm -rf /var/lib/apt/lists/* \
        && echo libjemalloc.so.2 > /etc/ld.so.preload; \
    fi
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Numeric, so that Kubernetes can verify runAsNonRoot.
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["/venv/bin/python", "-m", "tenant_apiserver"]
CMD ["serve"]
