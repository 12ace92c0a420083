"""What the tests and the measurements of the page find in a stack: tenants, and images that nobody had to develop."""
