"""Files put together byte by byte, as no encoder would write them: one module a format."""
