"""A wheel with compiled kernels. Off unless it is asked for, as compiling takes minutes and ties the wheel to a Python
and a platform:

HATCH_BUILD_HOOK_ENABLE_CUSTOM=true uv build --wheel --build-constraints requirements.lock --require-hashes

DOVETAIL_WHEEL_POLICIES="easy plan-awf" puts in only what these policies need.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Kernels(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles them into a folder of its own and has that folder put into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self.folder = tempfile.TemporaryDirectory()
        policies = os.environ.get("DOVETAIL_WHEEL_POLICIES", "").split()
        command = [sys.executable, "-P", "-m", "dovetail.engine.ahead", "ship", self.folder.name, *policies]
        sources = {**os.environ, "PYTHONPATH": str(Path(self.root) / "src")}
        subprocess.run(command, env=sources, check=True)  # noqa: S603 - ourselves, no shell
        build_data["force_include"][self.folder.name] = "dovetail/kernels/compiled"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.folder.cleanup()
