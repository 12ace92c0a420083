"""Deliveries to many endpoints, of which some do not answer, in virtual time: how long others wait, and the cost."""
