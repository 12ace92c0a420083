"""Where the local stack keeps its files: environments in the checkout, what changes in a state folder."""

import os
from dataclasses import dataclass
from pathlib import Path

from stacks.record import record_file, state_folder

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "template.yaml"
SAMCONFIG = ROOT / "samconfig.toml"
TOOLS = ROOT / "tools"
SETUP = TOOLS / "setup" / "environments.sh"

# The environments and the compiled modules belong to the checkout: every stack of it uses the same ones.
_VENVS = ROOT / ".darkroom" / "venvs"
EMULATOR_PYTHON = _VENVS / "emulator" / "bin" / "python"
FUNCTION_PYTHON = _VENVS / "runtime" / "bin" / "python"
SAM = _VENVS / "sam" / "bin" / "sam"
BYTECODE = ROOT / ".darkroom" / "bytecode"


@dataclass(frozen=True, kw_only=True)
class State:
    """The folder of one local stack: what survives it (logs, the build's cache) and what goes with it (`session`)."""

    folder: Path

    @classmethod
    def current(cls) -> "State":
        """The one that this process is told to use."""
        return cls(folder=state_folder(os.environ))

    @property
    def stack_file(self) -> Path:
        """Says where the running stack answers; there only while one runs."""
        return record_file(self.folder)

    @property
    def lock(self) -> Path:
        """Held by the one supervisor of this folder, and holding its process id."""
        return self.folder / "run" / "lock"

    @property
    def deploy_lock(self) -> Path:
        """Held while something is built or deployed."""
        return self.folder / "run" / "deploy.lock"

    @property
    def session(self) -> Path:
        """Whatever lives only as long as the stack: the emulator's data and everybody's temporary files."""
        return self.folder / "run" / "session"

    @property
    def ready_file(self) -> Path:
        """Written by the emulator once it answers."""
        return self.session / "ready.json"

    @property
    def emulator_data(self) -> Path:
        """Objects, queues' files, function workers."""
        return self.session / "emulator"

    @property
    def clock(self) -> Path:
        """Says how far ahead of this machine's the stack's clock is."""
        return self.session / "clock"

    @property
    def temporary(self) -> Path:
        """TMPDIR of every child process."""
        return self.session / "tmp"

    @property
    def aws_config(self) -> Path:
        """The only place in which the AWS profile of the local stack exists."""
        return self.folder / "aws" / "config"

    @property
    def sam(self) -> Path:
        """What SAM CLI downloads and builds; it downloads into `.aws-sam` of the folder in which it runs."""
        return self.folder / "sam"

    @property
    def deployed_layers(self) -> Path:
        """Remembers which layers the emulator holds; gone with it."""
        return self.session / "layers.json"

    @property
    def logs(self) -> Path:
        """One file a step, of the last run."""
        return self.folder / "logs"

    @property
    def developed(self) -> Path:
        """Where `--develop` puts the variants."""
        return self.folder / "developed"
