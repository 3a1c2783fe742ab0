"""Asks pip whether this package, with its extras, installs beside the newest frameworks.

A bound too narrow does not fail: pip falls back to an old release of the framework without a
word. So each framework is resolved alone and together with this package; its version must be
the same. Installs nothing. Prints a table; exits with 1 where a version differs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = (
    ("litellm",),
    ("litellm[proxy]",),
    ("crewai",),
    ("crewai[anthropic]",),
    ("langchain-anthropic", "langchain-openai"),
    ("pydantic-ai-slim[anthropic,openai]",),
    ("openai-agents",),
    ("instructor[anthropic]",),
    ("fastmcp",),
)
SDKS = ("anthropic", "openai", "httpx", "httpx2")


def resolved(*requirements: str) -> dict[str, str]:
    """The version of each package that pip would install, or an exit that says why not."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
        command += ["--quiet", "--disable-pip-version-check", "--report", str(report)]
        done = subprocess.run(  # noqa: S603 - our own command
            [*command, *requirements], capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"pip cannot resolve {' '.join(requirements)}:\n{done.stderr}")
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {entry["metadata"]["name"].lower(): entry["metadata"]["version"] for entry in found}


def main() -> int:
    """Resolves each set; gives the exit status."""
    failed = 0
    for framework in FRAMEWORKS:
        alone, beside = resolved(*framework), resolved(f"{ROOT}[all]", *framework)
        names = [requirement.partition("[")[0] for requirement in framework]
        older = [name for name in names if alone[name] != beside[name]]
        sdks = ", ".join(f"{name} {beside[name]}" for name in SDKS if name in beside)
        versions = ", ".join(f"{name} {alone[name]}" for name in names)
        print(f"{' '.join(framework)}: {versions}; with {sdks}", flush=True)
        for name in older:
            print(f"  only {name} {beside[name]} installs beside this package", flush=True)
        failed += len(older)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
