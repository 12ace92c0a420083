"""Operators' commands for pauses."""
