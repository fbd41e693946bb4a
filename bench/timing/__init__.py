"""Speed, memory and operation counts of one variant beside the baseline."""
