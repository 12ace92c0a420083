"""`darkroom capacity`: what a load needs, and what it costs."""
