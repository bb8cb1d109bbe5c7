"""The variants of the flash crowd: the same crowd on broken settings, on healthy ones, and on a stack with a fault.

Capacity of a simulated device with `a` ms host overhead and `c` ms an item at batch B is B / (a + B c): on `small`
(20 + 1) batches of 8 carry 286 requests/s and batches of 32 carry 615; on `compute-bound` (5 + 3.6) batches of 32
carry 266. The crowd sends 340 requests/s of which the cache answers about 12 %, so 299/s reach the model.

- canary: batches of 4 carry 166/s, and 172/s reach each of two replicas. So the backlog grows by a few requests a
  second: the replica that goes on without the fix for a minute must not come to its deadline meanwhile.
- saturation: with 325 requests/s the backlog grows by 20/s, and a second device takes it down within a deadline.
- large-model: the same, and an item in INT8 takes 1.4 ms: batches of 32 then carry 642/s.
- saturation-at-limit: at `slow` (5 + 15.5) batches of 32 carry 64/s, on four devices 255/s.
- throttled: at 400 of its 1500 MHz `small` carries 228/s.
- slow-preprocessing: the pattern tries every way to cut a question in four, 10 ms for a question of 59 characters on
  the machine it was chosen on. One process does 95/s; 18/s need it in the calm, 176/s in the crowd.
- cold-cache: `launch-bound` (60 + 2.5) carries 229/s. A warm cache leaves it 20 % of 320/s, a cold one
  320/s less those that join another's inference, which is why so many questions are popular.
- lost-cache: the same device. A cache that keeps what is popular leaves it 54 % of 300/s. With entries that live 2 s
  from their writing while each popular question comes every 4 s, the backlog grows until the wait makes up for it: at
  about 2.5 s, with a hit ratio of 10 to 12 %. Afterwards it drains by 67/s, which takes longer than on other devices:
  hence the later measuring, one deadline after the change. Batches gather while the one before is worked on;
  to wait longer for them would bring the healthy p99 near to the alert.
- long-delay: 48 requests gather in 0.2 s while there is a crowd. When it has gone 17/s reach the model, and each batch
  waits its whole 2 s.
- slow-replica: with its device taken for 0.25 s before each execution the second replica carries 106/s of its 150/s.
- vip-flood: `compute-bound-half` (10 + 7.2) in batches of 16 carries 128/s, and 256/s standard ones reach it beside
  16/s VIP ones. Without priorities all of them wait until their deadline, which is short here: waiting is all there is
  to see.
- bad-change: the traffic of the crowd all along. A limit of 8 carries 286/s of the 299/s: the backlog grows slowly.
- slow-cache: a lookup waits up to the length of a stall, and half of that on average.
"""

from __future__ import annotations

from latencydoctor.errors import UsageError
from latencydoctor.model.drill import Blow, Injection, Scenario
from latencydoctor.model.load import Mix

CALM_RPS = 65.0
CROWD_RPS = 340.0
CANARY_CROWD_RPS = 392.0

_BROKEN_BATCHING = (
    ("inference.batching.preferred_batch_size", "0"),
    ("inference.batching.max_batch_size", "8"),
    ("inference.batching.timeout_micros", "0"),
)

FLASH_CROWD: dict[str, Scenario] = {
    scenario.fault: scenario
    for scenario in (
        Scenario(
            fault="batching",
            title="Flash crowd on a batching limit of 8 without a wait",
            accepted_causes=("batching-failed",),
            expected_fix="batch-floor",
            accelerator="sim:small",
            settings=_BROKEN_BATCHING,
            calm_rps=CALM_RPS,
            crowd_rps=CROWD_RPS,
        ),
        Scenario(
            fault="canary",
            title="Flash crowd on two replicas with a batching limit of 4, mended by a canary first",
            accepted_causes=("batching-failed",),
            expected_fix="batch-floor",
            accelerator="sim:small",
            settings=(
                ("inference.replicas", "2"),
                ("inference.batching.preferred_batch_size", "0"),
                ("inference.batching.max_batch_size", "4"),
                ("inference.batching.timeout_micros", "0"),
            ),
            calm_rps=CALM_RPS,
            crowd_rps=CANARY_CROWD_RPS,
            deadline_ms=10_000,
            verified_within_s=180.0,
            canary=True,
        ),
        Scenario(
            fault="none",
            title="The same crowd on healthy settings",
            accepted_causes=(),
            expected_fix="",
            accelerator="sim:small",
            settings=(),
            calm_rps=CALM_RPS,
            crowd_rps=CROWD_RPS,
        ),
        Scenario(
            fault="saturation",
            title="Flash crowd on healthy batching and too small a device",
            accepted_causes=("saturation",),
            expected_fix="scale-out",
            accelerator="sim:compute-bound",
            settings=(),
            calm_rps=CALM_RPS,
            crowd_rps=325.0,
        ),
        Scenario(
            fault="large-model",
            title="Flash crowd on a device too small for the model in FP32",
            accepted_causes=("saturation",),
            expected_fix="int8",
            accelerator="sim:compute-bound",
            settings=(),
            calm_rps=CALM_RPS,
            crowd_rps=325.0,
        ),
        Scenario(
            fault="saturation-at-limit",
            title="Flash crowd on as many replicas as there is room for, all of them too slow",
            accepted_causes=("saturation",),
            expected_fix="",
            accelerator="sim:slow",
            settings=(("inference.replicas", "4"),),
            calm_rps=CALM_RPS,
            crowd_rps=CROWD_RPS,
        ),
        Scenario(
            fault="throttled",
            title="Flash crowd on healthy settings and a device that lowers its clock",
            accepted_causes=("accelerator-throttled", "thermal-throttling", "power-capping"),
            expected_fix="",
            accelerator="sim:small",
            settings=(),
            calm_rps=CALM_RPS,
            crowd_rps=CROWD_RPS,
            injection=Injection(Blow.THROTTLE, 400, "the device's clock falls from 1500 to 400 MHz"),
        ),
        Scenario(
            fault="slow-preprocessing",
            title="Flash crowd on a redaction pattern that backtracks",
            accepted_causes=("slow-preprocessing",),
            expected_fix="",
            accelerator="sim:small",
            settings=(("preprocessing.redact_pattern", "'.*.*.* ?@.*'"),),
            calm_rps=20.0,
            crowd_rps=200.0,
        ),
        Scenario(
            fault="cold-cache",
            title="A cache that is emptied again and again, under steady traffic",
            accepted_causes=("cache-ineffective", "cache-flushed", "cache-evicting"),
            expected_fix="",
            accelerator="sim:launch-bound",
            settings=(),
            calm_rps=320.0,
            crowd_rps=320.0,
            injection=Injection(Blow.FLUSH_CACHE, 0.5, "the cache is emptied, and every 0.5 s again"),
            mix=Mix(hot_share_ratio=0.85, hot_count=900, zipf_exponent=0.0),
            warm_rps=100.0,
            warm_s=12.0,
            calm_s=34.0,
        ),
        Scenario(
            fault="lost-cache",
            title="The cache is emptied, and a time to live of 2 s keeps it from filling again",
            accepted_causes=("cache-ineffective", "cache-flushed"),
            expected_fix="cache-warmup",
            accelerator="sim:launch-bound",
            settings=(("cache.ttl_seconds", "2"), ("inference.batching.timeout_micros", "20000")),
            calm_rps=200.0,
            crowd_rps=300.0,
            injection=Injection(
                Blow.LOSE_CACHE, 0.25, "the job that renewed the cache's entries ends, and the cache is emptied"
            ),
            mix=Mix(hot_share_ratio=0.46, hot_count=600, zipf_exponent=0.0),
            warm_rps=100.0,
            warm_s=18.0,
            calm_s=40.0,
            deadline_ms=14_000,
        ),
        Scenario(
            fault="long-delay",
            title="The crowd leaves a batcher that waits 2 s for 48 requests",
            accepted_causes=("queue-delay-too-long",),
            expected_fix="",
            accelerator="sim:small",
            settings=(
                ("inference.batching.preferred_batch_size", "48"),
                ("inference.batching.max_batch_size", "48"),
                ("inference.batching.timeout_micros", "2000000"),
            ),
            calm_rps=300.0,
            crowd_rps=20.0,
        ),
        Scenario(
            fault="vip-flood",
            title="A flood of standard requests at twice the capacity, and VIP customers among them",
            accepted_causes=("saturation",),
            expected_fix="vip-priority",
            accelerator="sim:compute-bound-half",
            settings=(
                ("inference.batching.preferred_batch_size", "8"),
                ("inference.batching.max_batch_size", "16"),
                ("inference.batching.timeout_micros", "20000"),
            ),
            calm_rps=CALM_RPS,
            crowd_rps=310.0,
            mix=Mix(vip_share_ratio=0.06),
            deadline_ms=3000,
            vip_p99_below_ms=500.0,
        ),
        Scenario(
            fault="bad-change",
            title="Steady traffic, and somebody lowers the batching limit to 8",
            accepted_causes=("recent-change",),
            expected_fix="revert-change",
            accelerator="sim:small",
            settings=(),
            calm_rps=CROWD_RPS,
            crowd_rps=CROWD_RPS,
            injection=Injection(
                Blow.CHANGE_SETTINGS, 0, "somebody sets the largest batch to 8 and the wait to 0", _BROKEN_BATCHING
            ),
        ),
        Scenario(
            fault="slow-cache",
            title="A cache server that stalls, and a client that waits for it",
            accepted_causes=("slow-cache",),
            expected_fix="",
            accelerator="sim:small",
            settings=(("cache.timeout_ms", "3000"),),
            calm_rps=CALM_RPS,
            crowd_rps=CALM_RPS,
            injection=Injection(Blow.STALL_CACHE, 1.5, "the cache server stands still for 1.5 s at a time"),
        ),
        Scenario(
            fault="slow-replica",
            title="Flash crowd on two replicas, of which one shares its device with somebody else",
            accepted_causes=("slow-replica",),
            expected_fix="",
            accelerator="sim:small",
            settings=(("inference.replicas", "2"),),
            calm_rps=CALM_RPS,
            crowd_rps=CROWD_RPS,
            injection=Injection(Blow.CROWD_DEVICE, 0.25, "somebody else uses the second replica's device as well"),
        ),
    )
}


def find(fault: str) -> Scenario:
    """The variant of that name; `UsageError` naming those there are."""
    if fault not in FLASH_CROWD:
        raise UsageError(f"there is no fault {fault!r}", hint=f"Known: {', '.join(FLASH_CROWD)}.")
    return FLASH_CROWD[fault]
