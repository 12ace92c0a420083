"""The cost of an upload: our own time, the SDK's and AWS's, and what a cold function adds."""
