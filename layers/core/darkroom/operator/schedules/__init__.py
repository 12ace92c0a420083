"""Operators' commands for schedules."""
