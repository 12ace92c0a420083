"""The adapters of webhooks."""
