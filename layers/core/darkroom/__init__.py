"""Darkroom: an image pipeline that never loses an upload."""

import gc
import sys

IS_IN_LAMBDA = "awslambdaric" in sys.modules
"""Whether Lambda's runtime loads this: a function's process then does nothing else."""

if IS_IN_LAMBDA:
    # What is imported stays: looking for garbage among it takes a fifteenth of a cold start. `entry_point`, which comes
    # last, enables it again.
    gc.disable()
