"""Operators' commands for webhooks."""
