"""Celery as its documents ask for it where no task may be lost, with Redis and Pillow.

    PEERS_JOB=<file> PEERS_PORT=<broker> python -m benchmarks.peers.celery_app PREFIX COUNT     adds tasks

https://docs.celeryq.dev/en/stable/userguide/tasks.html#Task.acks_late says what its settings are for, and
https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html what the visibility timeout is.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from celery import Celery

from benchmarks.engine import careful_pillow

JOB: dict[str, Any] = json.loads(Path(os.environ["PEERS_JOB"]).read_text())

app = Celery("photos", broker=f"redis://127.0.0.1:{os.environ['PEERS_PORT']}/0")
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    broker_transport_options={"visibility_timeout": float(os.environ["PEERS_QUIET_SECONDS"])},  # an hour by default
    broker_connection_retry_on_startup=True,
    worker_cancel_long_running_tasks_on_connection_loss=True,
)


def develop(image_id: str) -> None:
    """Makes the variants, as node/standard.cjs does."""
    _record("start", image_id)
    if JOB["variants"]:
        made = careful_pillow.run(Path(JOB["photo"]).read_bytes(), JOB["variants"], JOB["encoding"])
        folder = Path(JOB["folder"], image_id)
        folder.mkdir(parents=True, exist_ok=True)
        for name, body in made.items():
            (folder / name).write_bytes(body)
    _record("end", image_id)
    if (strike := Path(JOB["strike"])).exists():
        strike.unlink()
        os.killpg(0, signal.SIGKILL)  # the work is done, and nobody knows it yet


def _record(event: str, image_id: str) -> None:
    with Path(JOB["log"]).open("a") as log:
        log.write(f"{event} {image_id} {time.time()}\n")


task = app.task(name="develop", autoretry_for=(Exception,), retry_backoff=True, max_retries=5)(develop)


def main(prefix: str, count: int) -> None:
    """Adds so many tasks, one after another; each line says what was added, and the milliseconds that it took."""
    with app.connection_for_write() as connection:
        connection.ensure_connection()
        for number in range(count):
            image_id, began = f"{prefix}-{number}", time.perf_counter()
            task.apply_async((image_id,), task_id=image_id, connection=connection, retry=False)
            print(image_id, (time.perf_counter() - began) * 1000, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
