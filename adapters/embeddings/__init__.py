"""Embedders of other packages and services; each module needs the extra of its name."""
