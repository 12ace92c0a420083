"""What an hour of the dearest reads costs that a free key may send."""
