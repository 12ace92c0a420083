"""What operators have paused."""
