"""The API of tenants."""
