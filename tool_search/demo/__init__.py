"""The demo: a toolbox of real offline tools and the conversation that searches it."""
