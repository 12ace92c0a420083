"""What every command of an operator needs: the audit log, a rate, and retries of what may pass."""
