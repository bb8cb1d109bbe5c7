"""INT8 builds as tests need them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from latencydoctor.model.builds import BuildTime, ModelBuild, files_digest

TIMES = (BuildTime(1, 2.5, 1.0, 2.5), BuildTime(16, 28.0, 10.0, 2.8))


def build(folder: str = "/cache/int8", drop_upper_ratio: float = 0.009, questions: int = 1228) -> ModelBuild:
    """A build that passes, unless told otherwise."""
    return ModelBuild(
        folder=folder,
        precision="int8",
        recipe="dynamic",
        bytes_before=69_000_000,
        bytes_after=17_250_000,
        questions=questions,
        top1_before_ratio=0.904,
        top1_after_ratio=0.901,
        drop_ratio=0.003,
        drop_upper_ratio=drop_upper_ratio,
        times=TIMES,
        cpu="a CPU",
        vnni=True,
        others=(("static Q/DQ", "refused"),),
        files=(("model.py", 10, "0" * 64),),
        digest="d" * 64,
    )


def build_in(folder: Path) -> ModelBuild:
    """A build whose files are those of a folder."""
    files = tuple(
        (path.name, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.iterdir())
    )
    digest = files_digest({name: content for name, _, content in files})
    made = build(str(folder))
    return ModelBuild(**{**{name: getattr(made, name) for name in made.__slots__}, "files": files, "digest": digest})
