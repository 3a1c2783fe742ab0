"""The core of a conversation; README.md beside this file says in which order to read it."""
