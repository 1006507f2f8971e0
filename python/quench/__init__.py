"""A thin binding over quench's C library: what infer functions written in Python need."""
