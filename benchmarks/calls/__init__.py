"""The calls to AWS of an upload, a look at its status, its worker, and a sweep with nothing to do."""
