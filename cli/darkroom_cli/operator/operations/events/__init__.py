"""Operators' commands for events."""
