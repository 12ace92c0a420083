"""The proof that nothing accepted is lost, doubled or stuck: `make prove`."""
