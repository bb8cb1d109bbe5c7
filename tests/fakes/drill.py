"""A drill's edges without a server: the patient's latency follows the settings, and time moves only when slept."""

from __future__ import annotations

from dataclasses import dataclass, field

from latencydoctor.app.drill_ports import Executions, Place, Treated
from latencydoctor.app.ports import Observer, Progress
from latencydoctor.model.canary import CanaryTrial
from latencydoctor.model.diagnosis import Diagnosis
from latencydoctor.model.drill import Injection, Scenario
from latencydoctor.model.load import LoadPlan, PhaseStart, WindowStats
from latencydoctor.model.remedy import Decision, NothingToDo, Plan, Verification
from tests.fakes.clock import FakeClock

SLOW_MS, FAST_MS = 2000.0, 100.0


@dataclass(slots=True)
class Scene:
    """What is true on the stage: whether the crowd is there, whether the settings are fixed, what has been called."""

    clock: FakeClock
    broken: bool = True
    crowd_s: float | None = None
    fixed_s: float | None = None
    alert_after_s: float = 7.0
    early_alert: bool = False
    overruns: float = 0.0
    failed: int = 0
    late_ms: float = 1.0
    calls: list[str] = field(default_factory=list)


class FakePatient:
    """Implements `Patient`; its alert fires a while after the crowd met broken settings."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def up(self, scenario: Scenario, observer: Observer) -> Place:
        self.scene.calls.append("up")
        observer(Progress("up", "fake ready"))
        return Place("http://fake", scenario.accelerator, ("one?", "two?"), 5000.0)

    def strike(self, injection: Injection) -> None:
        self.scene.calls.append(f"strike {injection.blow}")

    def firing(self) -> tuple[str, ...]:
        scene = self.scene
        since = scene.crowd_s + scene.alert_after_s if scene.crowd_s is not None else None
        fires = scene.early_alert or (scene.broken and since is not None and scene.clock.now_s() >= since)
        return ("InferenceLatencyHigh",) if fires else ()

    def executions(self) -> Executions:
        return Executions(1000.0, self.scene.overruns)

    def down(self) -> None:
        self.scene.calls.append("down")


class FakeLoad:
    """Implements `Load`: windows are slow while the crowd is on broken settings."""

    def __init__(self, scene: Scene, plan: LoadPlan) -> None:
        self.scene, self.plan = scene, plan

    def phases_started(self) -> tuple[PhaseStart, ...]:
        return ()

    def switch(self, phase: str) -> None:
        self.scene.calls.append(f"switch {phase}")
        assert phase in [known.name for known in self.plan.phases]
        self.scene.crowd_s = self.scene.clock.now_s()

    def settled(self, end_s: float) -> bool:
        return self.scene.clock.now_s() >= end_s

    def window(self, start_s: float, end_s: float) -> WindowStats:
        scene = self.scene
        crowd = scene.crowd_s is not None and start_s >= scene.crowd_s
        slow = crowd and scene.broken and (scene.fixed_s is None or start_s < scene.fixed_s)
        rate = next(one.rate_rps for one in self.plan.phases if one.name == ("crowd" if crowd else "calm"))
        count = round(rate * (end_s - start_s))
        p99_ms = SLOW_MS if slow else FAST_MS
        return WindowStats(
            start_s=start_s,
            end_s=end_s,
            settled=True,
            offered_count=count,
            answered_count=count - scene.failed,
            failed_count=scene.failed,
            offered_rps=rate,
            answered_rps=rate,
            p50_ms=p99_ms / 2,
            p95_ms=p99_ms * 0.9,
            p99_ms=p99_ms,
            error_ratio=0.0,
            hit_ratio=0.12,
            late_p99_ms=scene.late_ms,
            late_max_ms=scene.late_ms,
        )

    def stop(self, *, drain: bool = True) -> None:
        self.scene.calls.append("stop")


class FakeLoads:
    """Implements `LoadRunner`."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def start(self, plan: LoadPlan) -> FakeLoad:
        self.scene.calls.append("load")
        return FakeLoad(self.scene, plan)


class FakeDoctor:
    """Implements `Doctor` with a ready diagnosis and plan; applying mends the scene, rolling back breaks it again."""

    def __init__(self, scene: Scene, diagnosis: Diagnosis, plan: Plan | NothingToDo) -> None:
        self.scene, self.diagnosis, self.planned = scene, diagnosis, plan
        self.decision = Decision.KEEP
        self.trial: CanaryTrial | None = None
        self.restored = plan.objects[0].digest if isinstance(plan, Plan) else ""

    def diagnose(self) -> Diagnosis:
        self.scene.calls.append("diagnose")
        return self.diagnosis

    def plan(self, fix: str) -> Plan | NothingToDo:
        self.scene.calls.append(f"plan {fix}")
        return self.planned

    def apply(self, plan: Plan, observer: Observer) -> Treated:
        self.scene.calls.append("apply")
        self.scene.clock.sleep(1.0)
        in_effect_s = self.scene.fixed_s = self.scene.clock.now_s()
        self.scene.clock.sleep(20.0)
        verification = Verification(self.decision, "three checks passed", ())
        return Treated("run-1", "journal.jsonl", in_effect_s, verification, self.trial)

    def roll_back(self, run_id: str, observer: Observer) -> str:
        self.scene.calls.append(f"rollback {run_id}")
        self.scene.fixed_s = None
        return self.restored
