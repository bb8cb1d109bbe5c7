"""Where everything of one stack lies: the paths of its state folder and the short folder of its sockets."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import KnownError

MAX_SOCKET_PATH_BYTES = 85
"""A Unix socket's path holds 107 bytes; supervisord binds it under a temporary name up to 20 bytes longer first."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one stack, all below `state` (mode 0700) except the sockets when their path would be too long."""

    state: Path

    @property
    def settings(self) -> Path:
        return self.state / "settings.yaml"

    @property
    def kept_generations(self) -> Path:
        """The texts of the settings that were in effect before, kept by the controller."""
        return self.state / "settings-history.json"

    @property
    def endpoints(self) -> Path:
        return self.state / "endpoints.json"

    @property
    def doctor_config(self) -> Path:
        """The doctor's configuration for this stack, so that it meets the stack as a stranger's."""
        return self.state / "latencydoctor.yaml"

    @property
    def run(self) -> Path:
        return self.state / "run"

    @property
    def lock(self) -> Path:
        """Held by `up` and `down`, so that two of them on one state folder take turns."""
        return self.run / "stack.lock"

    def device_lock(self, replica: int = 1) -> Path:
        """Held by a model instance for each execution: the simulated device does one thing at a time."""
        return self.run / f"device-{replica}.lock"

    def device_clock(self, replica: int = 1) -> Path:
        """A number in it is the clock in MHz that the simulated device runs at; without it that of its profile."""
        return self.run / f"device-{replica}.clock"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    def log(self, part: str) -> Path:
        return self.logs / f"{part}.log"

    @property
    def models(self) -> Path:
        """Triton's model repository."""
        return self.state / "models"

    @property
    def supervisor_config(self) -> Path:
        return self.state / "supervisord.conf"

    @property
    def supervisor_pid(self) -> Path:
        return self.run / "supervisord.pid"

    @property
    def prometheus(self) -> Path:
        return self.state / "prometheus"

    @property
    def triton_targets(self) -> Path:
        """The Tritons that Prometheus is to scrape: it follows this file while it runs."""
        return self.prometheus / "targets" / "triton.json"

    @property
    def serving(self) -> Path:
        """Which Tritons take traffic: the controller writes it, the gateway follows it."""
        return self.run / "serving.json"

    @property
    def alertmanager(self) -> Path:
        return self.state / "alertmanager"

    @property
    def valkey(self) -> Path:
        return self.state / "valkey"

    @property
    def identity(self) -> str:
        """A short name unique to this state folder: marks its processes and its shared-memory segments."""
        return hashlib.sha256(os.fsencode(self.state)).hexdigest()[:12]

    @property
    def shm_prefix(self) -> str:
        """What every shared-memory segment of this stack's Tritons starts with, below /dev/shm."""
        return f"latencydoctor-{self.identity}-"

    def shm_prefix_of(self, replica: int) -> str:
        """The same for one of them: it clears what its predecessor left, and nothing of its neighbour."""
        return f"{self.shm_prefix}{replica}-"

    def folders(self) -> tuple[Path, ...]:
        """Every folder `create` makes."""
        return (
            self.state,
            self.run,
            self.logs,
            self.models,
            self.prometheus,
            self.triton_targets.parent,
            self.alertmanager,
            self.valkey,
        )

    def create(self) -> None:
        """Makes the folders, each for its owner only; KnownError when the state folder is somebody else's."""
        self.state.parent.mkdir(parents=True, exist_ok=True)
        for folder in self.folders():
            folder.mkdir(mode=0o700, exist_ok=True)
        _own_only(self.state)

    @property
    def socket_folder(self) -> Path:
        """Where the Unix sockets go: `run`, or where its path is too long a short one of this state folder's own."""
        if len(os.fsencode(self.run)) + len("/supervisor.sock") <= MAX_SOCKET_PATH_BYTES:
            return self.run
        return Path("/tmp") / f"latencydoctor-{os.getuid()}-{self.identity}"

    def sockets(self) -> Path:
        """The folder of the sockets, made when it is not there; KnownError when somebody else has taken its name."""
        self.socket_folder.mkdir(mode=0o700, exist_ok=True)
        _own_only(self.socket_folder)
        return self.socket_folder

    def remove_sockets(self) -> None:
        """Removes the sockets, and their folder where it is not `run`."""
        for path in self.socket_folder.glob("*.sock*"):
            path.unlink(missing_ok=True)
        if self.socket_folder != self.run and self.socket_folder.is_dir():
            self.socket_folder.rmdir()


def _own_only(folder: Path) -> None:
    """Local users who can reach the sockets or the model folder can run code as us: refuse a folder they own."""
    found = folder.lstat()
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
        raise KnownError(
            f"{folder} belongs to another user or is no folder",
            hint="Choose another state folder with --state.",
        )
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def locate(state: Path | None) -> Layout:
    """The layout of `state`, or of the default state folder of this user."""
    if state is None:
        # Only here: a command that never touches the stack need not load it.
        from platformdirs import user_state_path  # noqa: PLC0415 - only where the stack is used

        state = user_state_path("latencydoctor", appauthor=False) / "stack" / "default"
    # One spelling for each folder, since its identity comes of it. The last link of the path is left, to be refused.
    path = Path(os.path.abspath(state.expanduser()))  # noqa: PTH100 - pathlib's own keeps `..`
    return Layout(path.parent.resolve() / path.name)
