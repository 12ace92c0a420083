"""Operators' commands for images."""
