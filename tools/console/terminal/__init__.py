"""What all commands share: what they show, how they are interrupted, what they do to many."""
