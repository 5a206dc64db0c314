"""An error that is kept holds no frames, and with them no windows, whatever led to it."""

from __future__ import annotations

from dataflow.graph.calls import forget_frames


def _raised(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except Exception as caught:
        return caught


def test_the_frames_of_causes_and_of_what_was_handled_meanwhile_are_both_forgotten() -> None:
    first, cause = _raised(KeyError("first")), _raised(OSError("cause"))
    error = _raised(ValueError("error"), cause)
    error.__context__ = first
    forget_frames(error)
    assert [link.__traceback__ for link in (error, cause, first)] == [None] * 3


def test_the_frames_of_errors_in_a_group_are_forgotten() -> None:
    parts = [_raised(KeyError("one")), _raised(OSError("two"))]
    forget_frames(ExceptionGroup("both", parts))
    assert [part.__traceback__ for part in parts] == [None] * 2


def test_causes_that_go_round_in_a_circle_come_to_an_end() -> None:
    first, second = _raised(KeyError("first")), _raised(OSError("second"))
    first.__cause__, second.__cause__ = second, first
    forget_frames(first)
    assert first.__traceback__ is second.__traceback__ is None
