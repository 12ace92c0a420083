"""Requests of every kind to the API, generated from its own description by Schemathesis."""
