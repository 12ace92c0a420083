"""CPU time, quality and memory of the transcode engine, against what else one would use, in one run."""
