"""Uploads that are announced."""
