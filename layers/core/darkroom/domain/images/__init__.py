"""An image: its row, its transitions, its claims, its order."""
