"""Sieves let through every line that their pattern could match, also where a wrapper has escaped it."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencydoctor.evidence.logs.sieve import Sieve, Word, sieve

PATTERNS = {
    "Request timeout expired": "Request timeout expired",
    r"failed to load '[^']{1,200}'(?: version \d{1,9})?: ": "failed to load 'm\tx' version 3: ",
    r'HTTP/1\.1" 50[0234] \d{1,9}': 'HTTP/1.1" 503 17',
    r"(?i)cuda (?:error|failure)(?: \d{1,3})?: out of memory": "Cuda ERROR 2: out of Memory",
    r"[Ff]ailed to (?:decode|parse)\b.{0,40}<eos>": "failed to parse \x1b it <eos>",
    r"^a&b\\c µs$": "a&b\\c µs",
    r"(?i:Käse) 🧀 \d": "KäSE 🧀 7",
    r"x\sy\tz\W{1,3}[^ ,]{1,9}!": 'x\ty\tz"<"q"!',
    r"[^x]{2}q(?:a|b){1,3}w+?": "\n\nqabww",
    r"(?:one|)(?:two)?three{2}": "threee",
}


def passes(one: Sieve, data: bytes) -> bool:
    """What both engines do with a sieve, in Python's terms."""
    if not one.words:
        return re.search(one.form.encode(), data) is not None
    low = data.lower()
    return any(word.text.encode() in (low if word.caseless else data) for word in one.words)


def docker(text: str) -> str:
    return json.dumps({"log": text + "\n", "stream": "stdout"})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_a_pattern_matches_passes_however_it_is_wrapped(pattern: str) -> None:
    text = PATTERNS[pattern]
    assert re.search(pattern.encode(), text.encode()), "the example must match"
    one = sieve(pattern)
    quoted = json.dumps(text, ensure_ascii=False)
    for raw in (
        text,
        docker(text),
        docker(quoted),
        docker(docker(docker(quoted))),
        html.escape(text),
        html.escape(quoted),
    ):
        assert passes(one, raw.replace("\n", "").encode()) or "\n" in text, raw


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_form_stays_on_its_line(pattern: str) -> None:
    one = sieve(pattern)
    assert "\n" not in "".join(word.text for word in one.words)
    parsed = re.compile(one.form.encode())
    assert not parsed.pattern or all(b"\n" not in found for found in re.findall(parsed, b"a\n\n b\nx\ny"))


def test_a_plain_text_is_known_to_be_all_there_is() -> None:
    assert sieve("Request timeout expired").exact == "Request timeout expired"
    for pattern in ("(?i)expired", "^expired", r"expired\b", "expired|over", r"a\x62cdefgh"):
        assert sieve(pattern).exact == ""


def test_common_words_alone_are_no_sieve() -> None:
    assert sieve(r"Waiting: [1-9]\d{2} reqs").words == ()
    assert sieve(r"Waiting: [1-9]\d{2} gryphons").words == (Word(" gryphons"),)


def test_what_many_spellings_share_is_one_word() -> None:
    assert sieve(r"CUDA_ERROR_LAUNCH_(?:FAILED|TIMEOUT) \d").words == (Word("CUDA_ERROR_LAUNCH_"),)
    assert sieve(r"(?:[Gg]ryphon|[Zz]ebra)s \d").words == tuple(
        Word(text) for text in ("Zebras ", "zebras ", "Gryphons ", "gryphons ")
    )


@pytest.mark.parametrize("pattern", ["(broken", r"(a)\1", "a(?=b)", "a(?<!b)", "(?>a)b", "a++b", "*"])
def test_what_no_linear_engine_takes_is_refused(pattern: str) -> None:
    with pytest.raises(re.error):
        sieve(pattern)


PIECES = st.sampled_from(
    [
        "gryphon",
        "Error",
        " ",
        "[Aa]b",
        "(?:one|two)",
        r"\d{1,3}",
        ".{0,5}",
        "(?:x)?",
        r"[^']{1,4}",
        '"',
        "'",
        r"\s",
        "&",
        "µ",
    ]
)


@given(st.lists(PIECES, min_size=1, max_size=6).map("".join), st.data())
def test_whatever_a_pattern_matches_passes_its_sieve(pattern: str, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(pattern, fullmatch=True).filter(lambda found: "\n" not in found))
    if re.search(pattern.encode(), text.encode()) is None:
        return  # str and bytes differ in what they call a space or a digit
    assert passes(sieve(pattern), text.encode())
    assert passes(sieve(pattern), json.dumps(docker(text)).encode())
