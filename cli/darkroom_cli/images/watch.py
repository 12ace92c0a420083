"""Follows accepted images until each has ended, with one loop that polls a few at a time, however many there are."""

from __future__ import annotations

import heapq
import time
from collections import Counter, deque
from collections.abc import Callable

from darkroom_cli.terminal import display
from darkroom_client import Darkroom
from darkroom_client.client import ReceivedStatus, Refused, StatusAnswer
from darkroom_client.polling import PATIENCE_POLLS, pause_before_poll

# Images end roughly in the order in which they were accepted, so polling the oldest few finds almost every change;
# polling every image would take CPU time from a local stack's workers.
WINDOW = 8


class UploadWatch:
    """The images of one upload: which have ended, and which one to poll next, and when."""

    def __init__(self, api: Darkroom, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._answers: dict[str, StatusAnswer] = {}
        self._polls: dict[str, int] = {}
        self._queued: deque[tuple[float, str]] = deque()
        self._scheduled: list[tuple[float, str]] = []
        self._in_window = 0
        self.lost: dict[str, Refused] = {}

    def add(self, answer: StatusAnswer) -> None:
        """Follows one more image, given the response that accepted it."""
        image_id = answer.image_id
        if image_id in self._answers:
            return
        self._answers[image_id] = answer
        if not answer.is_terminal:
            self._polls[image_id] = 0
            due_at = self._clock() + pause_before_poll(polls=0, retry_after_seconds=answer.retry_after_seconds)
            self._queued.append((due_at, image_id))
            self._fill_window()

    @property
    def documents(self) -> dict[str, ReceivedStatus]:
        """The newest document of each image."""
        return {image_id: answer.document for image_id, answer in self._answers.items()}

    @property
    def unfinished(self) -> int:
        """How many images have not ended yet."""
        return len(self._queued) + len(self._scheduled)

    def counts(self) -> Counter[str]:
        """How many images are in each status, as far as is known."""
        return Counter(answer.document["status"] for answer in self._answers.values())

    def seconds_until_next_poll(self) -> float | None:
        """How long to wait before `poll`, or None if no image is left to poll."""
        return max(0.0, self._scheduled[0][0] - self._clock()) if self._scheduled else None

    def poll(self) -> str:
        """Polls the next image and returns its id. An image that the API no longer knows goes to `lost`."""
        _, image_id = heapq.heappop(self._scheduled)
        was_in_window = self._is_in_window(image_id)
        try:
            answer = self._api.status(image_id, seen=self._answers[image_id])
        except Refused as error:
            self.lost[image_id] = error
            self._in_window -= was_in_window
        except BaseException:
            heapq.heappush(self._scheduled, (self._clock(), image_id))
            raise
        else:
            self._answers[image_id] = answer
            if answer.is_terminal:
                self._in_window -= was_in_window
            else:
                self._polls[image_id] += 1
                self._in_window -= was_in_window and not self._is_in_window(image_id)
                pause = pause_before_poll(polls=self._polls[image_id], retry_after_seconds=answer.retry_after_seconds)
                heapq.heappush(self._scheduled, (self._clock() + pause, image_id))
        self._fill_window()
        return image_id

    def _is_in_window(self, image_id: str) -> bool:
        return self._polls[image_id] < PATIENCE_POLLS

    def _fill_window(self) -> None:
        while self._queued and self._in_window < WINDOW:
            heapq.heappush(self._scheduled, self._queued.popleft())
            self._in_window += 1


def followed(api: Darkroom, image_id: str, *, timeout_seconds: float) -> ReceivedStatus:
    """Waits until an image has ended, showing its progress; raises ApiError after the timeout (0 means none)."""
    with display.ProgressReport(display.errors()) as report:

        def show(document: ReceivedStatus) -> None:
            progress = document["progress"]
            report.show(image_id, completed=progress["done"], total=progress["total"], detail=document["status"])

        return api.wait(image_id, timeout_seconds=timeout_seconds or None, on_document=show)
