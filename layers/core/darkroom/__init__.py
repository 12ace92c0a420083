"""Darkroom: an image pipeline that never loses an upload."""

import gc
import sys

IS_IN_LAMBDA = "awslambdaric" in sys.modules
"""Whether Lambda's runtime loads this: a function's process then does nothing else."""

if IS_IN_LAMBDA:
    # What is imported stays, so looking for garbage among it is a tenth of a cold start for nothing. `entry_point`, which
    # comes last, enables it again.
    gc.disable()
