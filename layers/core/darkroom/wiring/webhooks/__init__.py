"""The wiring of webhooks."""
