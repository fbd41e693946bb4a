"""Tests that `bench new` writes beside a module; they run in `tests/`, not here."""
