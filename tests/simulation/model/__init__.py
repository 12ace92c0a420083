"""The stateful model: generated histories of the real operations over the fakes, and what must hold in all of them."""
