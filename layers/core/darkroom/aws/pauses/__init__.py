"""The table of what is paused."""
