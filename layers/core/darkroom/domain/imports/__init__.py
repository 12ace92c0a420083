"""Images that are fetched from URLs."""
