"""CPU time, quality and memory of the transcode engine and of its alternatives, measured in one run."""
