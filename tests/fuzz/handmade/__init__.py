"""Files assembled byte by byte, as no encoder would write them: one module per format."""
