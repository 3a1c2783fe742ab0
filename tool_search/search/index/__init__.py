"""The index that all engines share."""
