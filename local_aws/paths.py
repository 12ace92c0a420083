"""The paths of a local stack: everything that changes is in its state folder."""

import os
from dataclasses import dataclass
from pathlib import Path

from local_aws.project import given
from local_aws.stacks.record import record_file, state_folder


@dataclass(frozen=True, kw_only=True)
class State:
    """The folder of one local stack: what outlives it (logs, the build's cache) and what does not (`session`)."""

    folder: Path

    @classmethod
    def current(cls) -> "State":
        """The one that this process should use."""
        project = given()
        return cls(folder=state_folder(os.environ, variable=project.state_variable, otherwise=project.home))

    @property
    def stack_file(self) -> Path:
        """Contains the address of the running stack; exists only while one runs."""
        return record_file(self.folder)

    @property
    def lock(self) -> Path:
        """Locked by the one supervisor of this folder; contains its process id."""
        return self.folder / "run" / "lock"

    @property
    def deploy_lock(self) -> Path:
        """Locked while something is built or deployed."""
        return self.folder / "run" / "deploy.lock"

    @property
    def session(self) -> Path:
        """Everything that lives only as long as the stack: the emulator's data and all temporary files."""
        return self.folder / "run" / "session"

    @property
    def ready_file(self) -> Path:
        """Written by the emulator when it is ready."""
        return self.session / "ready.json"

    @property
    def relay_file(self) -> Path:
        """Contains the further host by which the emulator is reached; exists only while there is one."""
        return self.session / "relay"

    @property
    def emulator_data(self) -> Path:
        """Objects, queue files, function workers."""
        return self.session / "emulator"

    @property
    def clock(self) -> Path:
        """Contains how far the stack's clock is ahead of this machine's."""
        return self.session / "clock"

    @property
    def temporary(self) -> Path:
        """TMPDIR of every child process."""
        return self.session / "tmp"

    @property
    def aws_config(self) -> Path:
        """The only file that defines the AWS profile of the local stack."""
        return self.folder / "aws" / "config"

    @property
    def sam(self) -> Path:
        """SAM CLI's downloads and builds; it downloads into `.aws-sam` of the folder in which it runs."""
        return self.folder / "sam"

    @property
    def layers(self) -> Path:
        """The archives of the layers that were deployed last, and a record of them."""
        return self.sam / "layers"

    @property
    def logs(self) -> Path:
        """The last run's logs, one file per step."""
        return self.folder / "logs"

    @property
    def developed(self) -> Path:
        """The variants that `--develop` writes."""
        return self.folder / "developed"
