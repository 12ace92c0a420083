"""Variants of format `best`: whether its table of qualities holds, and what it saves."""
