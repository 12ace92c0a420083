"""Webhooks: endpoints, deliveries, signatures."""
