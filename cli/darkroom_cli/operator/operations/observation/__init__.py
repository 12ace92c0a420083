"""Operators' commands for observing a stack."""
