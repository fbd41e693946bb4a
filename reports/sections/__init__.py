"""The sections of a report, one file a section."""
