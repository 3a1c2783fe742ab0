"""The demo: a toolbox of real offline tools and a conversation that searches it."""
