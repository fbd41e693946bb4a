import os
import time

import pytest

from bench.gpu.isolated import isolated
from bench.running.worker import WorkerSettings
from bench.timing.reason import Reason


@pytest.mark.slow
def test_a_process_of_its_own_gives_an_answer_or_a_reason():
    settings = WorkerSettings()

    def call(function, *arguments, timeout_s=60.0):
        return isolated(function, *arguments, settings=settings, timeout_s=timeout_s)

    assert call(max, 3, 4) == 4
    assert call(int, "three").status == "failed"
    died = call(os._exit, 7)
    assert (died.status, "ended with 7" in died.detail) == ("failed", True)
    assert call(time.sleep, 60, timeout_s=0.1) == Reason("timeout", "took longer than 0 s.")
