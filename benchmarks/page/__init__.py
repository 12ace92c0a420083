"""What a reader waits for: the page's first load, a picture, a scroll."""
