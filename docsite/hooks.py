"""README and CHANGELOG as pages of the site, and links that leave docs/ as links inside of it.

On GitHub a page links to `../README.md` and `../examples`; the site has the first as its home, and says of the second where it is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"index.md": "README.md", "changelog.md": "CHANGELOG.md"}
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)#:\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    for name, source in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    folder = ROOT if page.file.src_uri in PAGES else ROOT / "docs"
    return LINK.sub(lambda link: _moved(link, folder), markdown)


def _moved(link: re.Match[str], folder: Path) -> str:
    """A link as it stands on GitHub, as one of the site."""
    target = (folder / link[2]).resolve()
    home = {str(ROOT / source): name for name, source in PAGES.items()}
    if str(target) in home:
        return f"{link[1]}({home[str(target)]}{link[3] or ''})"
    if target.is_relative_to(ROOT / "docs"):
        return f"{link[1]}({target.relative_to(ROOT / 'docs')}{link[3] or ''})"
    return f"{link[1].strip('![]')} (`{target.relative_to(ROOT)}`)"
