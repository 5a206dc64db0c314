"""Signals that stop a command: which are ours, and what they end with."""

from __future__ import annotations

import os
import signal
from threading import Thread

import pytest

from dataflow.cli.stopping import Terminated, exit_code, signal_name, sigterm_as_ctrl_c, stop_behind


def test_the_first_sigterm_stops_and_those_behind_it_do_not() -> None:
    with sigterm_as_ctrl_c():
        with pytest.raises(Terminated) as caught:
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert (exit_code(caught.value), signal_name(caught.value)) == (143, "SIGTERM")
    assert (exit_code(KeyboardInterrupt()), signal_name(KeyboardInterrupt())) == (130, "Ctrl-C")


def test_the_handler_of_someone_else_stays() -> None:
    seen: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with sigterm_as_ctrl_c():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert seen == [signal.SIGTERM]


def test_another_thread_sets_no_handler() -> None:
    seen: list[object] = []

    def work() -> None:
        with sigterm_as_ctrl_c():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]


def test_a_stop_is_found_behind_a_failed_import_and_behind_nothing_else() -> None:
    stop = Terminated()
    failed, other = ImportError("half imported"), ValueError("wrong")
    failed.__context__ = other.__context__ = stop
    assert stop_behind(stop) is stop
    assert stop_behind(failed) is stop
    assert stop_behind(other) is None
    assert stop_behind(ImportError("not there")) is None
