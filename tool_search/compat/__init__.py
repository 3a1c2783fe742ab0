"""Tool search as users of other systems know it: their tools' names, answers and settings."""
