import torch

from bench.timing.memory import TensorBytes, lost_gpu, peak_bytes, release_memory

CPU = torch.device("cpu")
FLOAT = 4


def test_a_product_needs_its_result():
    one, two = torch.randn(30, 20), torch.randn(20, 50)
    assert peak_bytes(lambda: one @ two, CPU) == 30 * 50 * FLOAT


def test_a_product_and_its_gradients_are_all_there_at_the_peak():
    one = torch.randn(30, 20, requires_grad=True)
    two = torch.randn(20, 50, requires_grad=True)
    gradient = torch.randn(30, 50)

    def work():
        result = one @ two
        result.backward(gradient)

    assert peak_bytes(work, CPU) == (30 * 50 + 30 * 20 + 20 * 50) * FLOAT


def test_what_was_freed_before_the_peak_does_not_count():
    x = torch.randn(1000)

    def work():
        for _ in range(10):
            y = x + 1
            del y

    assert peak_bytes(work, CPU) == 1000 * FLOAT


def test_views_results_in_place_and_what_was_there_before_are_free():
    x = torch.randn(40, 40)

    def work():
        x.t()[3:].mul_(2)
        x.view(-1)[:5].add_(1)

    assert peak_bytes(work, CPU) == 0


def test_freed_bytes_are_taken_off_even_where_the_id_is_used_again():
    x = torch.randn(1000)
    with TensorBytes() as seen:
        for _ in range(50):
            _ = x * 2
        kept = [x * 2 for _ in range(3)]
    assert seen.current == len(kept) * 1000 * FLOAT + 1000 * FLOAT  # `_` is still there
    assert seen.peak == seen.current


def test_several_results_of_one_operation_all_count():
    x = torch.randn(100)
    assert peak_bytes(x.sort, CPU) == 100 * FLOAT + 100 * 8


def test_a_gpu_that_an_error_has_taken_is_not_taken_for_one_that_works(monkeypatch):
    emptied = []

    def fails():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    assert not lost_gpu(), "a process that has none has lost none"
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    assert not lost_gpu()
    release_memory()
    assert emptied == [True]
    monkeypatch.setattr(torch.cuda, "synchronize", fails)
    assert lost_gpu()
    release_memory()
    assert emptied == [True], "nothing can be handed back there"
