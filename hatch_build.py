"""The README of the package: its links, relative in the repository, lead to the address in ``[project.urls]``."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

UNKNOWN = "OWNER"
"""What stands in the address until a maintainer fills it in."""


def absolute(text: str, source: str) -> str:
    """The text with absolute links, or as it is while the address is not known."""
    if UNKNOWN in source:
        return text
    text = re.sub(r"(!\[[^\]]*\]\()(?![a-z]+:|#)", rf"\g<1>{source}/raw/main/", text)
    return re.sub(r"(\]\()(?![a-z]+:|#)", rf"\g<1>{source}/blob/main/", text)


class Readme(MetadataHookInterface):
    """Gives the package its README."""

    def update(self, metadata: dict) -> None:
        """Add the text."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, metadata["urls"]["Source"])}
