"""`darkroom local …`: the stack on this machine, of which its first import tells the embedded AWS."""

from darkroom_cli.local import project as project
