"""A model's configuration as Triton's own message: read from text, compared, and changed at the fields that fixes set.

Which setting is which field stands here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from google.protobuf import text_format
from google.protobuf.message import Message
from tritonclient.grpc import model_config_pb2 as pb

from latencydoctor.errors import ContentError, Location
from latencydoctor.targets import pbtxt

ENABLED = "inference.batching.enabled"
PREFERRED = "inference.batching.preferred_batch_size"
MAXIMUM = "inference.batching.max_batch_size"
WAIT = "inference.batching.timeout_micros"
LEVELS = "inference.priority_levels"
STANDARD_TIMEOUT = "inference.priorities.standard_timeout_ms"
INSTANCES = "inference.instances"

BATCHING = frozenset({ENABLED, PREFERRED, MAXIMUM, WAIT, LEVELS, STANDARD_TIMEOUT})

STANDARD = 2
"""The level of requests that name none, where there are two; 1 goes first."""

Settings = tuple[tuple[str, str], ...]


def parsed(text: str, name: str) -> pb.ModelConfig:
    """The message of a `config.pbtxt`; ContentError with its line. Fields of a newer Triton are passed over."""
    try:
        return text_format.Parse(text, pb.ModelConfig(), allow_unknown_field=True)
    except (text_format.ParseError, RecursionError) as error:
        line = getattr(error, "GetLine", lambda: None)() or 0
        problem = " ".join(str(error).partition(" : ")[2].split()) or "it is no model configuration"
        raise ContentError(
            problem, location=Location(name, line), hint="Triton could not read it either: put it right first."
        ) from error


def printed(config: pb.ModelConfig) -> str:
    """The message as text, one field a line."""
    return str(text_format.MessageToString(config))


def stated(config: pb.ModelConfig) -> Settings:
    """The settings that this message states; a number 0 is what Triton takes an absent field for."""
    batcher = config.dynamic_batching
    pairs = (
        (ENABLED, "true" if config.HasField("dynamic_batching") else ""),
        (PREFERRED, str(min(batcher.preferred_batch_size, default=""))),
        (MAXIMUM, _some(config.max_batch_size)),
        (WAIT, _some(batcher.max_queue_delay_microseconds)),
        (LEVELS, "true" if batcher.priority_levels > 1 else ""),
        (STANDARD_TIMEOUT, _some(_standard_timeout_ms(batcher))),
        (INSTANCES, _some(_instances(config))),
    )
    return tuple((key, value) for key, value in pairs if value)


def in_effect(config: pb.ModelConfig) -> Settings:
    """The same of what a server runs: everything that is not stated has Triton's default."""
    defaults = {ENABLED: "false", PREFERRED: "0", MAXIMUM: "0", WAIT: "0", LEVELS: "false", STANDARD_TIMEOUT: "0"}
    return tuple((defaults | dict(stated(config))).items())


def _some(number: int) -> str:
    return str(number) if number else ""


def _standard_timeout_ms(batcher: pb.ModelDynamicBatching) -> int:
    if STANDARD not in batcher.priority_queue_policy:
        return 0
    policy = batcher.priority_queue_policy[STANDARD]
    rejects = policy.timeout_action == pb.ModelQueuePolicy.REJECT
    return int(policy.default_timeout_microseconds // 1000) if rejects else 0


def _instances(config: pb.ModelConfig) -> int:
    return sum(group.count * max(1, len(group.gpus)) for group in config.instance_group)


def edited(text: str, values: Sequence[tuple[str, str]], live: pb.ModelConfig, name: str) -> str:
    """The text with these settings, every other byte as it was, and proof that exactly these fields changed.

    `live` is what the server runs, whose instance group is taken where the file states none.
    """
    wanted, result = parsed(text, name), text
    for key, value in values:
        if key not in (INSTANCES, *_EDITS) or not (value == "true" or (value.isascii() and value.isdecimal())):
            raise ContentError(f"{key} cannot be set to {value!r} here", location=Location(name))
        if key == INSTANCES:
            result = _grow(result, wanted, value, name, live)
        else:
            result = _EDITS[key](result, wanted, value, name)
    if parsed(result, name) != wanted:
        raise ContentError(
            "the file cannot be edited without changing something else",
            hint="Write dynamic_batching and instance_group once each, in braces.",
            location=Location(name),
        )
    return result


Edit = Callable[[str, pb.ModelConfig, str, str], str]


def _enable(text: str, wanted: pb.ModelConfig, _value: str, name: str) -> str:
    if wanted.HasField("dynamic_batching"):
        return text
    wanted.dynamic_batching.SetInParent()
    return pbtxt.add(text, (), "dynamic_batching { }", name)


def _prefer(text: str, wanted: pb.ModelConfig, value: str, name: str) -> str:
    del wanted.dynamic_batching.preferred_batch_size[:]
    wanted.dynamic_batching.preferred_batch_size.append(int(value))
    return pbtxt.put(text, ("dynamic_batching", "preferred_batch_size"), f"[ {value} ]", name)


def _limit(text: str, wanted: pb.ModelConfig, value: str, name: str) -> str:
    wanted.max_batch_size = int(value)
    return pbtxt.put(text, ("max_batch_size",), value, name)


def _wait(text: str, wanted: pb.ModelConfig, value: str, name: str) -> str:
    wanted.dynamic_batching.max_queue_delay_microseconds = int(value)
    return pbtxt.put(text, ("dynamic_batching", "max_queue_delay_microseconds"), value, name)


def _levels(text: str, wanted: pb.ModelConfig, _value: str, name: str) -> str:
    wanted.dynamic_batching.priority_levels = wanted.dynamic_batching.default_priority_level = STANDARD
    text = pbtxt.put(text, ("dynamic_batching", "priority_levels"), str(STANDARD), name)
    return pbtxt.put(text, ("dynamic_batching", "default_priority_level"), str(STANDARD), name)


def _reject_late(text: str, wanted: pb.ModelConfig, value: str, name: str) -> str:
    if wanted.dynamic_batching.priority_queue_policy:
        raise ContentError(
            "dynamic_batching already has queue policies of its own",
            location=Location(name),
            hint=f"Set default_timeout_microseconds of level {STANDARD} by hand.",
        )
    policy = wanted.dynamic_batching.priority_queue_policy[STANDARD]
    policy.timeout_action = pb.ModelQueuePolicy.REJECT
    policy.default_timeout_microseconds = int(value) * 1000
    rule = f"timeout_action: REJECT default_timeout_microseconds: {int(value) * 1000}"
    content = f"priority_queue_policy {{ key: {STANDARD} value {{ {rule} }} }}"
    return pbtxt.add(text, ("dynamic_batching",), content, name)


def _grow(text: str, wanted: pb.ModelConfig, value: str, name: str, live: pb.ModelConfig) -> str:
    count, left = divmod(int(value), max(1, len((wanted if wanted.instance_group else live).instance_group[0].gpus)))
    if left or not count:
        raise ContentError(
            f"{value} instances do not divide evenly among the devices", location=Location(name), hint="Choose another."
        )
    if wanted.instance_group:
        wanted.instance_group[0].count = count
        return pbtxt.put(text, ("instance_group", "count"), str(count), name)
    kind = live.instance_group[0].kind
    wanted.instance_group.add(count=count, kind=kind)
    return pbtxt.add(
        text, (), f"instance_group {{ count: {count} kind: {pb.ModelInstanceGroup.Kind.Name(kind)} }}", name
    )


_EDITS: dict[str, Edit] = {
    ENABLED: _enable,
    PREFERRED: _prefer,
    MAXIMUM: _limit,
    WAIT: _wait,
    LEVELS: _levels,
    STANDARD_TIMEOUT: _reject_late,
}


def reach(live: pb.ModelConfig, model: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The keys that can be set on this model, and in words what cannot, and why."""
    if live.HasField("ensemble_scheduling"):
        steps = ", ".join(dict.fromkeys(step.model_name for step in live.ensemble_scheduling.step))
        return frozenset(), (f"{model} is an ensemble, with neither batcher nor instances: treat one of {steps}.",)
    keys, limits = BATCHING | {INSTANCES}, []
    if live.HasField("sequence_batching"):
        keys -= BATCHING
        limits.append(f"{model} batches by sequence, which excludes dynamic batching.")
    elif not live.max_batch_size:
        keys -= BATCHING
        limits.append(f"{model} takes no batches (max_batch_size 0), and only who made it can say whether it could.")
    if len(live.instance_group) != 1:
        keys -= {INSTANCES}
        limits.append(f"{model} has {len(live.instance_group)} instance groups; which one should grow is not known.")
    return frozenset(keys), tuple(limits)


def differences(asked: pb.ModelConfig, runs: pb.ModelConfig) -> tuple[str, ...]:
    """Where the server runs something else than the file asks for, in words.

    What the file leaves out the server completes, from the model itself or with defaults. Of the batcher nothing is
    completed but the preferred sizes, so there a field that is not asked for is a difference too.
    """
    has, does = asked.HasField("dynamic_batching"), runs.HasField("dynamic_batching")
    found = list(_missing(asked, runs, ""))
    if has and not does:
        found.append("dynamic_batching: asked for, not in effect")
    elif does:
        for field in pb.ModelDynamicBatching.DESCRIPTOR.fields:
            if field.name != "preferred_batch_size" and field.type != field.TYPE_MESSAGE:
                found += _other(field.name, asked.dynamic_batching, runs.dynamic_batching)
    sizes = tuple(asked.dynamic_batching.preferred_batch_size) or (runs.max_batch_size,)
    if does and (tuple(runs.dynamic_batching.preferred_batch_size) or (runs.max_batch_size,)) != sizes:
        listed = " ".join(map(str, runs.dynamic_batching.preferred_batch_size))
        found.append(
            f"dynamic_batching.preferred_batch_size: {' '.join(map(str, sizes))} asked for, {listed} in effect"
        )
    return tuple(dict.fromkeys(found))


def _other(name: str, asked: Message, runs: Message) -> Iterator[str]:
    wanted, found = getattr(asked, name), getattr(runs, name)
    if wanted != found:
        yield f"dynamic_batching.{name}: {_shown(wanted)} asked for, {_shown(found)} in effect"


def _missing(asked: Message, runs: Message, path: str) -> Iterator[str]:
    for field, value in asked.ListFields():
        name, other = f"{path}{field.name}", getattr(runs, field.name)
        if field.name == "preferred_batch_size":
            continue
        if field.name == "instance_group":
            counts = [sum(group.count for group in groups) for groups in (value, other)]
            if counts[0] != counts[1]:
                yield f"instance_group: {counts[0]} asked for, {counts[1]} in effect"
        elif field.type == field.TYPE_MESSAGE and not hasattr(value, "__len__"):
            yield from _missing(value, other, f"{name}.")
        elif field.name in ("input", "output"):
            yield from _tensors(value, other, name)
        elif field.name == "parameters":
            # Their values may be anybody's secrets.
            keys = sorted(key for key in value if key not in other or value[key] != other[key])
            yield from (f"parameters {key}: not in effect as asked for" for key in keys)
        elif value != other:
            yield f"{name}: {_shown(value)} asked for, {_shown(other)} in effect"


def _tensors(asked: Sequence[Message], runs: Sequence[Message], name: str) -> Iterator[str]:
    """Inputs or outputs by name; the server may know more of them than the file says."""
    found = {getattr(one, "name", ""): one for one in runs}
    for one in asked:
        tensor = getattr(one, "name", "")
        if tensor not in found:
            yield f"{name} {tensor}: asked for, not in effect"
        else:
            yield from _missing(one, found[tensor], f"{name} {tensor}.")


def _shown(value: object) -> str:
    return " ".join(str(value).split()) or "nothing"
