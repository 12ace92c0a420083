"""Dead letters: what they say, and what they come from."""
