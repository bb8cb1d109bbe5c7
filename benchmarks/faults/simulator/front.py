"""Between client and server: balancing, connections, DNS, the network, and the proxy's patience."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.faults.simulator.traffic import Request

if TYPE_CHECKING:
    from benchmarks.faults.simulator.plant import Plant

RETRY, TRY_TIMED_OUT, BREAKER, CONNECTED = range(4)
LOST_PACKET_MS = 200.0
DNS_RETRY_MS = 1000.0
AT_ONCE_S = 0.004
"""So short a way is not worth an event of its own: nothing that matters happens meanwhile."""


class Front:
    """The proxy and the client's side of it. `open` is how many client requests are not over yet."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self.open = 0
        self.upstream_open = 0
        self._ready: list[int] = []

    def begin(self) -> None:
        """See which replicas get traffic in the second that begins."""
        everyone = [replica.index for replica in self._plant.replicas]
        self._ready = [index for index in everyone if self._plant.replicas[index].ready] or everyone

    def take_in(self, time_s: float, request: Request) -> None:
        """A client's request comes."""
        knobs = self._plant.knobs
        self.open += 1
        if knobs.front_max_requests and self.upstream_open >= knobs.front_max_requests:
            self._plant.log.proxy.add((time_s, BREAKER))
            self._over(time_s, request, 503, 0.0)
            return
        if knobs.load_cancel_after_s:
            self._plant.at(time_s + knobs.load_cancel_after_s, self._given_up, request)
        self._send(time_s, request)

    def _send(self, time_s: float, request: Request) -> None:
        plant, knobs = self._plant, self._plant.knobs
        request.replica = self._chosen()
        self.upstream_open += 1
        before_ms = knobs.front_cpu_ms * plant.random.uniform(0.6, 1.6)
        if plant.random.random() >= knobs.connect_reuse_ratio:
            before_ms += self._resolve_ms(time_s)
            request.connect_ms = knobs.connect_ms * plant.noise.factor(0.3)
            plant.log.proxy.add((time_s, CONNECTED))
        request.sent_s = time_s + before_ms / 1000
        on_way_ms = max(0.0, request.connect_ms) + self._network_ms() / 2
        arrives_s = request.sent_s + on_way_ms / 1000
        if arrives_s - time_s < AT_ONCE_S:
            plant.replicas[request.replica].arrive(arrives_s, request)
        else:
            plant.at(arrives_s, plant.replicas[request.replica].arrive, request)
        if knobs.front_try_timeout_s:
            plant.at(request.sent_s + knobs.front_try_timeout_s, self._try_expired, request)

    def _chosen(self) -> int:
        pinned, draw, ready = self._plant.knobs.front_imbalance, self._plant.random.random(), self._ready
        if pinned:
            if draw < pinned and ready[0] == 0:
                return 0
            draw = self._plant.random.random()
        return ready[int(draw * len(ready))]

    def _resolve_ms(self, time_s: float) -> float:
        plant, knobs = self._plant, self._plant.knobs
        took_ms = knobs.dns_ms * plant.noise.factor(0.5)
        failed = plant.random.random() < knobs.dns_fail_ratio
        plant.log.lookups.add((time_s, float(failed), took_ms))
        return took_ms + (DNS_RETRY_MS if failed else 0.0)

    def _network_ms(self) -> float:
        knobs = self._plant.knobs
        lost = knobs.network_loss_ratio and self._plant.random.random() < knobs.network_loss_ratio
        return knobs.network_ms * self._plant.noise.factor(0.25) + (LOST_PACKET_MS if lost else 0.0)

    def _try_expired(self, time_s: float, request: Request) -> None:
        if request.done:
            return
        plant = self._plant
        request.done = True
        self.upstream_open -= 1
        plant.log.proxy.add((time_s, TRY_TIMED_OUT))
        if plant.engine == "vllm":
            # Its API server notices that nobody listens any more; the others work on.
            request.dead = True
            plant.replicas[request.replica].server.cancel(time_s, request)
        plant.log.tries.add((time_s, request.replica, 504, 1000 * (time_s - request.sent_s), request.connect_ms))
        if request.tries < plant.knobs.front_retries:
            plant.log.proxy.add((time_s, RETRY))
            self._send(time_s, request.again(time_s))
        else:
            self._over(time_s, request, 504, 0.0)

    def _given_up(self, time_s: float, request: Request) -> None:
        """The client cancels; the server is told."""
        if request.done:
            return
        request.done = request.dead = True
        self.upstream_open -= 1
        self._plant.replicas[request.replica].server.cancel(time_s, request)
        self._plant.log.tries.add((time_s, request.replica, 499, 1000 * (time_s - request.sent_s), request.connect_ms))
        self._over(time_s, request, 499, 0.0)

    def answered(self, time_s: float, request: Request, status: int) -> None:
        """The server's answer leaves it at `time_s`; a try that nobody waits for any more is dropped."""
        if request.done:
            return
        request.done = True
        self.upstream_open -= 1
        back_ms = self._network_ms() / 2
        end_s = time_s + back_ms / 1000
        limit_s = self._plant.knobs.front_timeout_s
        if end_s - request.sent_s > limit_s:
            end_s, status = request.sent_s + limit_s, 504
        self._plant.log.tries.add((end_s, request.replica, status, 1000 * (end_s - request.sent_s), request.connect_ms))
        self._over(end_s, request, status, self._plant.knobs.front_cpu_ms / 2)

    def _over(self, time_s: float, request: Request, status: int, own_ms: float) -> None:
        self.open -= 1
        took_ms = 1000 * (time_s - request.first_s) + own_ms + self._plant.knobs.network_client_ms
        self._plant.log.requests.add((time_s + own_ms / 1000, request.first_s, status, took_ms))
