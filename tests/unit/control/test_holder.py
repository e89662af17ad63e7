"""A dead leader on the same host is known as dead; anybody else is waited for."""

import os
import subprocess
import sys

from podwarden.control.holder import is_dead, own_name


def test_this_process_is_alive_and_its_names_differ():
    assert not is_dead(own_name())
    assert own_name() != own_name()


def test_a_process_that_ended_here_is_dead():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    host, place, pid, chance = own_name().split("/")
    assert pid == str(os.getpid())
    assert is_dead(f"{host}/{place}/{ended.pid}/{chance}")


def test_of_another_host_or_namespace_nothing_is_known(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    host, place, _, chance = own_name().split("/")
    assert not is_dead(f"{host}/0{place}/{ended.pid}/{chance}")
    for odd in ("", "somebody", f"{host}/{place}/x/{chance}", f"{host}//{ended.pid}/{chance}"):
        assert not is_dead(odd)
    assert not is_dead(f"{host}/{place}/{ended.pid}/{chance}", proc=tmp_path)
