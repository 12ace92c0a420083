"""What AWS does and MiniStack does not: one module per behaviour, each with a test that fails once it does."""

SHIMS = (
    "http_api_body",
    "http_api_cors",
    "http_api_integration",
    "function_isolation",
)
