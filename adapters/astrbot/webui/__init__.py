"""The plugin's page in AstrBot's WebUI, and the facts that it shows."""
