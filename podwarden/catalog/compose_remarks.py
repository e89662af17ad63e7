"""What a Compose file's reader has to say: each remark with the place it is about."""

from __future__ import annotations

from dataclasses import dataclass, field

from podwarden.domain.check import join, show
from podwarden.errors import Problem

MOST_REMARKS = 400  # of one sort: a hostile file must not make a hostile answer


@dataclass(slots=True)
class Remarks:
    """notes: carried over, and means something else here. unsupported: not carried over.
    faults: with these there is nothing to deploy. The lines are filled in at the end.
    """

    notes: list[Problem] = field(default_factory=list)
    unsupported: list[Problem] = field(default_factory=list)
    faults: list[Problem] = field(default_factory=list)

    def note(self, path: str, value: object, text: str) -> None:
        _add(self.notes, path, value, text)

    def leave_out(self, path: str, value: object, text: str) -> None:
        _add(self.unsupported, path, value, text)

    def fault(self, path: str, value: object, text: str) -> None:
        _add(self.faults, path, value, text)


def _add(found: list[Problem], path: str, value: object, text: str) -> None:
    if len(found) < MOST_REMARKS:
        shown = "" if value is None else show(value)
        found.append(Problem(path, shown, text))


@dataclass(frozen=True, slots=True)
class Place:
    """A value of the file, where it stands, and where to say what is wrong with it."""

    path: str
    value: object
    remarks: Remarks
    key: str = ""  # its own key, whole; `path` may have it shortened

    def entry(self, key: str | int, value: object) -> Place:
        return Place(join(self.path, key), value, self.remarks, str(key))

    def note(self, text: str, value: object = None) -> None:
        self.remarks.note(self.path, value, text)

    def leave_out(self, text: str, value: object = None) -> None:
        self.remarks.leave_out(self.path, value, text)

    def fault(self, text: str, value: object = None) -> None:
        self.remarks.fault(self.path, self.value if value is None else value, text)

    def entries(self) -> list[Place]:
        """The entries of a list; a single scalar is a list of one, as Compose often allows."""
        if self.value is None:
            return []
        if isinstance(self.value, list):
            return [self.entry(place, value) for place, value in enumerate(self.value)]
        if isinstance(self.value, dict):
            self.fault("a list, written as - one")
            return []
        return [self]

    def items(self) -> list[Place]:
        """The entries of a section, each with its key."""
        if self.value is None:
            return []
        if not isinstance(self.value, dict):
            self.fault("a section such as key: value")
            return []
        return [self.entry(key, value) for key, value in self.value.items()]
