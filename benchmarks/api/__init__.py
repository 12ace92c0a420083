"""What an upload costs: our own time, the SDK's and AWS's, and what a cold function adds."""
