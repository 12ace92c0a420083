"""What an import from a manifest costs."""
