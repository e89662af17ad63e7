"""Reads a page as a program would: tags with their attributes, and the text."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.plain = ""  # without what stands in an expert fold
        self._expert = 0
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag, attrs) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in VOID:
            expert = "data-expert" in found
            self._expert += expert
            self._open.append((tag, expert))

    def handle_startendtag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag) -> None:
        while self._open:
            name, expert = self._open.pop()
            self._expert -= expert
            if name == tag:
                return

    def handle_data(self, data) -> None:
        self.text += data
        if not self._expert:
            self.plain += data

    def having(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [
            a for t, a in self.tags if t == tag and all(a.get(k) == v for k, v in wanted.items())
        ]


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader
