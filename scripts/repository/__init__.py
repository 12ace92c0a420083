"""What every tool reads of this repository, and where it writes what it has measured."""
