"""Every point at which a process that changes something can die, by name.

`journal` and `targets` do each effect inside `effects(Effect.X)`: the one place a change to a file, a lock or a server
passes through. In production that is `unwatched`, which does nothing. The crash matrix builds the same program with a
hook that ends its process before or after the n-th effect, so what is listed here is what is proven to be survived;
an effect done anywhere else fails a test.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum


class Effect(StrEnum):
    """What a run of apply, of rollback or of recovery does to the world outside, or asks of it."""

    JOURNAL_FOLDER = "journal folder made"
    JOURNAL_FOLDER_SYNC = "journal folder's own entry synced"
    JOURNAL_FILE = "journal file opened, made for the first record"
    JOURNAL_CUT = "journal's unfinished tail cut off"
    JOURNAL_WRITE = "journal record written"
    JOURNAL_SYNC = "journal record synced"
    JOURNAL_ENTRY_SYNC = "journal file's entry synced"
    LOCK_FILE = "lock file opened, made for the first run"
    LOCK_TAKE = "lock taken"
    LOCK_NAME = "holder written into the lock"
    LOCK_CLEAR = "holder taken out of the lock"
    FILE_CLEAR = "temporary file of a killed run removed"
    FILE_CREATE = "temporary file made"
    FILE_WRITE = "temporary file written"
    FILE_SYNC = "temporary file synced"
    FILE_RENAME = "file replaced"
    FILE_ENTRY_SYNC = "file's entry synced"
    FILE_REMOVE = "file removed that was not there before"
    FOLDER_TOUCH = "model folder's time set, so that Triton takes it for changed"
    VERSION_FOLDER = "temporary folder of a model's version made"
    VERSION_PLACE = "version's folder renamed into the model repository"
    VERSION_WITHDRAW = "version's folder renamed out of the model repository"
    VERSION_REMOVE = "emptied folder of a version removed"
    ASK_ADMIN = "gateway's admin socket asked what settings compile to"
    ASK_CONTROLLER = "controller asked which settings are in effect"
    ASK_TRITON = "Triton asked which configuration it runs"
    LOAD_MODEL = "Triton asked to load the model as its folder has it"
    ASK_ANSWERS = "gateway's admin socket asked what its cache holds"
    WRITE_ANSWERS = "answers written into the cache through the admin socket"
    REMOVE_ANSWERS = "a run's answers removed from the cache through the admin socket"
    TARGET_FOLDER = "folder made for the lock and the journals of a target that is only reached over the network"
    ASK_TORCHSERVE = "TorchServe asked which versions of a model it has"
    REGISTER_VERSION = "version registered with TorchServe"
    SCALE_WORKERS = "number of a version's workers set"
    SET_DEFAULT_VERSION = "version made the default"
    UNREGISTER_VERSION = "version unregistered from TorchServe"


Effects = Callable[[Effect], AbstractContextManager[None]]
"""Called with the effect about to be done; the effect is done inside the context it returns."""

_NOTHING = nullcontext()


def unwatched(_effect: Effect) -> AbstractContextManager[None]:
    """The hook of production: nothing happens before an effect, and nothing after it."""
    return _NOTHING
