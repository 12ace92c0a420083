"""What the sweeper decides."""
