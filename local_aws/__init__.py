"""The embedded AWS: an emulator, its corrections, the HTTP API's front end, and what runs it and deploys to it."""
