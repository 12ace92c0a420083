"""The wiring of schedules."""
