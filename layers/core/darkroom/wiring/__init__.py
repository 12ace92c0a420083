"""Connects each function's ports to their adapters: the one place where operations meet AWS.

Each function has a module of its own, so that it loads no other's operation, adapters or libraries.
"""
