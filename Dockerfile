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
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Numeric, so that Kubernetes can verify runAsNonRoot.
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["/venv/bin/python", "-m", "tenant_apiserver"]
CMD ["serve"]
