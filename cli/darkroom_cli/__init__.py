"""The `darkroom` command line: the local stack, and a client for any deployed one."""
