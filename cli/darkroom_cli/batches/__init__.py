"""`darkroom batches`: a tenant's batches of images."""
