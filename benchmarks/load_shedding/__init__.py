"""Measures what load shedding promises on the local stack: honest waits in a burst, and no harm by noisy tenants."""
