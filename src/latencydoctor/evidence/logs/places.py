"""Where a line stands: in which file of a rotated set, and as which line of it, told by its number in the stream."""

from __future__ import annotations

from bisect import bisect_right


class Places:
    """The files of one stream. `name` is how events name the first."""

    def __init__(self, name: str) -> None:
        self._begins = [1]
        self._names = [name]

    @property
    def current(self) -> str:
        """The file that was begun last."""
        return self._names[-1]

    def begin(self, name: str, first_line: int) -> None:
        """From this line on the stream is another file. Of the file before there may be nothing."""
        if self._begins[-1] == first_line:
            self._names[-1] = name
            return
        self._begins.append(first_line)
        self._names.append(name)

    def of(self, number: int) -> str:
        """The file that a line stands in."""
        return self._names[bisect_right(self._begins, number) - 1]

    def at(self, number: int) -> str:
        """A line as a reader would look it up: the file, and the line's number there, counted from 1."""
        index = bisect_right(self._begins, number) - 1
        return f"{self._names[index]}:{number - self._begins[index] + 1}"
