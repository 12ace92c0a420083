"""The sweeper in virtual time: what it keeps up with at latencies of AWS, and what each size of memory costs."""
