"""What only operators see: observations, traces, the audit log."""
