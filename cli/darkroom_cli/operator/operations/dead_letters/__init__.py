"""Operators' commands for dead letters."""
