import pytest

from bench.running.common_metrics import COMMON_METRICS, on_devices

STEP = next(metric for metric in COMMON_METRICS if metric.name == "train_step_time_ms")


@pytest.mark.parametrize(
    ("devices", "unit"),
    [
        ({"cpu"}, "ms of CPU time"),
        ({"cuda"}, "ms of wall time"),
        ({"cpu", "cuda"}, "ms of CPU time, ms of wall time on a GPU"),
    ],
)
def test_a_unit_names_the_clock_of_the_devices_of_its_cells(devices, unit):
    assert on_devices(STEP, devices).unit == unit


def test_no_unit_of_a_gpu_alone_speaks_of_cpu_time_except_under_a_name_that_does():
    units = {m.name: on_devices(m, {"cuda"}).unit for m in COMMON_METRICS if "cpu" not in m.name}
    assert [name for name, unit in units.items() if "CPU" in unit] == []


def test_what_a_layer_does_on_a_gpu_has_device_time():
    units = {m.name: on_devices(m, {"cuda"}).unit for m in COMMON_METRICS}
    assert units["prefill_tokens_per_s"] == "prompt tokens per second of device time"
    assert "device time of layers" in units["decode_tokens_per_s"]
