"""Drives the page in a real Chromium: for its tests, its benchmark, and the README's pictures."""
