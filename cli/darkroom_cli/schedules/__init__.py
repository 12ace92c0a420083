"""`darkroom schedules`."""
