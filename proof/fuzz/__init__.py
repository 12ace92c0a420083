"""Attacks the engine: files made to break decoders, and mutants of valid files, each under a memory limit."""
