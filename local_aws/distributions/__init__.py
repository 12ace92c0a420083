"""CloudFront's rules, as far as they need no emulator: how long it keeps an answer, and whom a signed URL lets in."""
