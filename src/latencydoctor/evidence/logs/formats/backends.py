"""Back ends that write into their server's log with heads of their own: ONNX Runtime, TensorFlow, TensorRT, TRT-LLM."""

from __future__ import annotations

import re

from latencydoctor.evidence.logs.clock import clock_s, midnight_s
from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.draft import LEVELS, Draft

_ORT = re.compile(
    r" \[([VIWEF]):onnxruntime:([^,\]]{0,100}), ([^\s\]]{1,200}:\d{1,7})(?: ([^\]]{0,300}))?\] ?", re.ASCII
)
_TENSORFLOW = re.compile(r": ([VIWEF]) (\S{1,200}:\d{1,7})\] ?", re.ASCII)
_LLM = re.compile(r"\[TensorRT-LLM\]\[(\w{4,8})\] ?", re.ASCII)
_US_DATE = re.compile(r"\[(\d\d)/(\d\d)/(\d{4})-(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\] ?", re.ASCII)
_TAGS = re.compile(
    r"(?:\[(TRT|TensorRT|TRT-LLM|TRT_LLM)\] ?)?(?:\[([VIWEF])\] ?|(VERBOSE|INFO|WARNING|ERROR|INTERNAL_ERROR): )?"
    r"(?:\[(TRT|TensorRT|TRT-LLM|TRT_LLM)\] ?)?",
    re.ASCII,
)
_BODY = re.compile(
    r"(?:\d{1,2}: )?\[([^\s\]]{1,200})::(?:[^\s\]]{1,200})::(\d{1,7})\] (?=Error Code \d)|\d{1,2}: (?=Internal Error)"
)
_LOGGED_BY = {"TRT": "tensorrt", "TensorRT": "tensorrt", "TRT-LLM": "tensorrt_llm", "TRT_LLM": "tensorrt_llm"}


def onnxruntime(rest: str, draft: Draft, dating: Dating) -> str | None:
    """` [L:onnxruntime:<logger>, <file>:<line> <func>] <message>`, behind the stamp."""
    match = _ORT.match(rest)
    if match is None:
        return None
    dating.own(draft, "onnxruntime")
    draft.head("onnxruntime", LEVELS[match[1]], match[3])
    return rest[match.end() :]


def tensorflow(rest: str, draft: Draft, dating: Dating) -> str | None:
    """`: L <path>:<line>] <message>`, behind the stamp."""
    match = _TENSORFLOW.match(rest)
    if match is None:
        return None
    dating.own(draft, "tensorflow")
    draft.head("tensorflow", LEVELS[match[1]], match[2])
    return rest[match.end() :]


def tensorrt(text: str, draft: Draft, dating: Dating) -> str | None:
    """`[MM/DD/YYYY-HH:MM:SS] [TRT] [L] <message>` in either order of the tags and with any of them missing."""
    llm = _LLM.match(text)
    if llm is not None:
        draft.head("tensorrt_llm", LEVELS.get(llm[1], ""))
        return text[llm.end() :]
    date = _US_DATE.match(text)
    tags = _TAGS.match(text, date.end() if date else 0)
    name = (tags[1] or tags[4]) if tags else None
    letter = tags[2] or tags[3] if tags else None
    if tags is None or (date is None and name is None) or (name is None and letter is None):
        return None
    program = _LOGGED_BY[name] if name else "tensorrt"
    if date is not None:
        midnight = midnight_s(int(date[3]), int(date[1]), int(date[2]))
        clock = clock_s(date[4], date[5])
        if midnight is not None and clock is not None:
            draft.naive_s, draft.zone_s = midnight + clock, None
            dating.own(draft, program)
    draft.head(program, LEVELS[letter] if letter else "")
    return _message(text[tags.end() :], draft)


def tensorrt_body(text: str, draft: Draft, _dating: Dating) -> str | None:
    """`N: [<file>::<func>::<line>] Error Code N: <Name> (<text>)` where a program printed it without a head."""
    if not _BODY.match(text):
        return None
    draft.head("tensorrt", "ERROR")
    return _message(text, draft)


def _message(body: str, draft: Draft) -> str:
    place = _BODY.match(body)
    if place is None or not place[1]:
        return body
    draft.file_line = f"{place[1]}:{place[2]}"
    return body[place.end() :]
