"""Words by which services refuse requests: a table for each dialect, and what all share."""
