"""Makes openapi.json, which the core's layer keeps for every stack in one file."""
