"""What all commands share: output, interrupts, durations, and work on many images."""
