"""The adapters that implement the ports with AWS; the only importer of botocore and of Powertools' idempotency."""
