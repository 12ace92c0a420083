"""The adapters that implement the ports with AWS; the only importer of boto3 and of Powertools' idempotency."""
