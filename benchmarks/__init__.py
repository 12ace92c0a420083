"""Programs that measure or attack the product, and write down what they found."""
