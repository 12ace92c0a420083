"""Programs that measure the product and report the results."""
