"""What scaling needs."""
