"""Names between backticks in sentences, which writers show as code.

Texts of others pass through the same writers. So a span is code only where it holds a name, a
selector or a command: no letter of these means anything in Markdown or in HTML.
"""

import re

_WORD = r"[\w\[\]=.,:+/-]+"
# GitHub reads a span between dollars as mathematics
_SPAN = re.compile(rf"(?<![`$])`({_WORD}(?: {_WORD})*)`(?![`$])")


def parted(text: str) -> list[str]:
    """Cut a text into what is plain and what is code by turns; the first and the last are plain.

    >>> parted("see `head=gqa` and `bench run --match params`.")
    ['see ', 'head=gqa', ' and ', 'bench run --match params', '.']
    >>> parted("an odd ` stays, and so does `<b>`")
    ['an odd ` stays, and so does `<b>`']
    """
    return _SPAN.split(text)
