"""The cost of delays: counted requests of the delay plane next to other ways to wait."""
