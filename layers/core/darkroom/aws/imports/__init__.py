"""Buckets of others, from which images are imported."""
