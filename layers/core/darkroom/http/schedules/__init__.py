"""The API of schedules."""
