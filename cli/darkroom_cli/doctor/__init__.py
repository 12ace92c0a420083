"""`darkroom doctor`: checks of a stack that change nothing."""
