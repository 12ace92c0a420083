"""Logs, metrics and traces, by Powertools; the service name and namespace come from template.yaml."""

from __future__ import annotations

from aws_lambda_powertools import Logger, Metrics, Tracer

logger = Logger()
metrics = Metrics()
tracer = Tracer()
