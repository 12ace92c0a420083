"""How quickly the local stack answers, develops and starts."""
