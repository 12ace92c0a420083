"""Runs the command line as `python -m darkroom_cli`."""

from darkroom_cli.main import main

if __name__ == "__main__":
    main()
