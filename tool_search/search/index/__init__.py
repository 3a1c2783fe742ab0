"""The inverted index, filters, and the ranking that all engines share."""
