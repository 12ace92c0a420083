"""Operators' commands for every part."""
