"""The operations of tenants."""
