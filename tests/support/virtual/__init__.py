"""Virtual time, in which the operations are played with calls that take as long as AWS takes."""
