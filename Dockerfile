# syntax=docker/dockerfile:1
FROM python:3.11-slim AS build
RUN python -m venv /venv
COPY requirements/requirements.txt /
RUN /venv/bin/python -m pip install --no-cache-dir --require-hashes -r /requirements.txt
COPY . /app
RUN /venv/bin/python -m compileall -q /app

FROM python:3.11-slim
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Numeric, so that Kubernetes can verify runAsNonRoot.
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["/venv/bin/python", "-m", "tenant_apiserver"]
CMD ["serve"]
