"""The proof that nothing accepted is lost, doubled or stuck: `make prove`."""

import logging

# In the worlds of the proof bookkeeping fails thousands of times, and each time is a warning. That is no result:
# without a handler Python would print them all between the results.
logging.getLogger("darkroom.bookkeeping").addHandler(logging.NullHandler())
