"""Webhooks amid faults: each call between an event and its receiver is struck, alone, in pairs and at random."""
