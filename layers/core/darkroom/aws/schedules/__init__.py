"""The adapters of schedules."""
