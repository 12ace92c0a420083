"""Requests of every kind to the API, made from its own description by Schemathesis."""
