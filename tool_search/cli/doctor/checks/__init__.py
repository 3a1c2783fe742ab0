"""The checks of an examination, one file a section of the configuration."""
