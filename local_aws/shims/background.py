"""Work that the shims do in the background, in the accounts and regions that have something to do."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from local_aws.ministack_internals import internals

_logger = logging.getLogger(__name__)


def every(seconds: float, work: Callable[[], None], *, name: str) -> None:
    """Do the work periodically from now on; failures are logged and the work is tried again."""

    def repeat() -> None:
        while True:
            try:
                work()
            except Exception:
                _logger.exception("%s went wrong", name)
            time.sleep(seconds)

    threading.Thread(target=repeat, name=name, daemon=True).start()


@contextmanager
def scope(account_id: str, region: str) -> Iterator[None]:
    """Act as a request of this account and region would."""
    with internals("core.responses").request_scope(account_id, region):
        yield


def scopes(store: Any) -> set[tuple[str, str]]:
    """Return the accounts and regions that have something in one of MiniStack's stores."""
    return {(account_id, region) for account_id, region, *_ in list(store._data)}
