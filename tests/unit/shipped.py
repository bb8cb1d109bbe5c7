"""The playbook and cause rules that ship, for tests of what is built on them."""

from __future__ import annotations

from latencydoctor.content.causes import load_causes
from latencydoctor.content.locate import locate
from latencydoctor.content.playbooks import load
from latencydoctor.diagnosis.rank import Knowledge

PLAYBOOK = load(locate().playbooks / "latency-spike.yaml")
KNOWLEDGE = Knowledge(PLAYBOOK, load_causes(locate()))
