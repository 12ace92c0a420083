"""What delays cost: counted requests of the delay plane beside other ways to wait."""
