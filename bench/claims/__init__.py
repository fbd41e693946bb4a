"""From claims to cells, and from stored rows to verdicts (ADR 20)."""
