"""What tenants used."""
