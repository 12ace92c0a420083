"""The embedded AWS: an emulator, its corrections, the HTTP API's front, and what starts, deploys to and stops them."""
