"""`darkroom upload-tokens`: tokens with which browsers upload."""
