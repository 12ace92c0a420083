"""The operations of the sweeper."""
