"""What AWS does and MiniStack does not: one module per behaviour, each with a test that fails once it does."""

SHIMS = (
    "http_api_body",
    "http_api_cors",
    "http_api_integration",
    "function_isolation",
    "function_concurrency",
    "initialisation_ahead",
    "throttled_invocations",
    "receipt_handles",
    "dead_letter_redrive",
    "queue_metrics",
    "queue_atomicity",  # its lock must enclose what the SQS shims before it do
    "batching_window",
    "mapping_concurrency",
    "state_machine_yaml",
    "execution_names",
    "wait_states",
    "alarm_evaluation",
    "embedded_metrics",
    "function_metrics",
    "execution_metrics",
    "http_api_metrics",
    "form_fields",
    "role_credentials",  # these eight matter only when IAM is evaluated
    "secure_transport",
    "conditional_writes",
    "principal_arn",
    "item_keys",
    "requested_permissions",
    "customer_keys",
    "stack_encryption",
)
