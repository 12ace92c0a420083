"""Measures what load shedding promises, against the local stack: honest waits in a burst, and quiet among noisy
tenants."""
