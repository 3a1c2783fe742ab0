"""Says whether the installed AstrBot is one that the plugin's page asks for.

Run by that AstrBot's Python, without arguments.
"""

import sys
from importlib import metadata
from pathlib import Path

import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "examples" / "astrbot_plugin_tool_search" / "metadata.yaml"


def complaint(installed: str, wanted: str) -> str | None:
    """What is wrong; None: nothing."""
    if SpecifierSet(wanted).contains(Version(installed), prereleases=True):
        return None
    return (
        f"AstrBot {installed} is installed, and the plugin asks for {wanted} "
        f"(astrbot_version in {PAGE.relative_to(ROOT)}): AstrBot will not load it. Name a release "
        "that fits: make test-astrbot ASTRBOT=..."
    )


if __name__ == "__main__":
    page = yaml.safe_load(PAGE.read_text(encoding="utf-8"))
    sys.exit(complaint(metadata.version("astrbot"), page["astrbot_version"]))
