"""The settings of the function of events."""

from __future__ import annotations

from darkroom.settings import EdgeSettings, MessageKeySettings


class PublishEventsSettings(MessageKeySettings, EdgeSettings):
    """What `publish_events` needs; `events_topic` is the topic's ARN, and `event_source` names this stack.
    `notices_topic` is the ARN of the operator's, if there is one."""

    events_topic: str
    event_source: str
    unpublished_events_url: str
    notices_topic: str = ""
