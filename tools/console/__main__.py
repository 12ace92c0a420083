"""Runs the command line as `python -m console`."""

from console.main import main

if __name__ == "__main__":
    main()
