"""What AWS refuses and MiniStack accepts: one module per refusal, each with a test that fails once it refuses."""

GUARDS = (
    "message_delay",
    "queue_event_source",
    "stream_event_source",  # matters only when IAM is evaluated
    "invocation_payload",
    "batch_item_failures",
    "state_machine_transitions",
    "dashboard_body",
    "form_checksum",
    "form_signature",  # before the policy, and so before the checksum
)
