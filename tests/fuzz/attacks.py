"""Every attack."""

from tests.fuzz import data_files, data_sets, plugins, run_folders, signals, spec_files, typed_text

ATTACKS = (
    *typed_text.ATTACKS,
    *spec_files.ATTACKS,
    *data_files.ATTACKS,
    *data_sets.ATTACKS,
    *run_folders.ATTACKS,
    *plugins.ATTACKS,
    *signals.ATTACKS,
)
