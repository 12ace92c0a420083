"""Operators' commands for usage."""
