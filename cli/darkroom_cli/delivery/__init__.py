"""`darkroom delivery …`: the stack that delivers images by CloudFront, and the keys with which it signs."""
