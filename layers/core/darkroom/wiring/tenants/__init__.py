"""The wiring of tenants."""
