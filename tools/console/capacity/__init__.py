"""`darkroom capacity`: what a load needs, and what that costs."""
