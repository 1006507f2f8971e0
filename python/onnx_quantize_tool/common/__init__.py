"""Registration of functions."""
