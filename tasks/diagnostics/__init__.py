"""Generated tasks that each ask for one ability."""
