"""Checks that no compiler makes: the expanded template, the functions' initialisation, the tiers of tests."""
