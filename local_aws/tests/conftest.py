"""Settings for every test: no AWS account, and a working Ctrl-C."""

import os
import signal

for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ.update(AWS_CONFIG_FILE=os.devnull, AWS_SHARED_CREDENTIALS_FILE=os.devnull, AWS_EC2_METADATA_DISABLED="true")

# A shell without job control starts background processes with interrupts ignored, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
