"""What `bench new` writes: a small real module for each axis, and in `tests/` its test.

`new_name` and `NewName` stand for the name that is asked for. No command imports these modules.
"""
