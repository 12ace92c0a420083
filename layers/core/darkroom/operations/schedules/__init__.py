"""The operations of schedules."""
