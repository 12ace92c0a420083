"""The operations of webhooks."""
