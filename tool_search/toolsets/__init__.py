"""Tools that really run: files, commands and pages of a workspace, and the toolbox of the demo."""
