"""The adapters of tenants."""
