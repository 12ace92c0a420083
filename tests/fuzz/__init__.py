"""Attacks the engine with files made to break decoders and with mutants of valid files, under a memory limit."""
