"""Operators' commands for tenants."""
