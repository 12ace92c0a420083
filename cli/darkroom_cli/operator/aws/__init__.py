"""The adapters of operators."""
