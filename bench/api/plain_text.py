"""Texts of others, made fit for a file and for a line: what UTF-8 can hold, and no megabytes."""

MOST_CHARACTERS = 1000
"""Longest sentence that is stored or printed; a message of an error may quote a whole file."""

STACK = "Exception raised from "
"""Where torch begins to name functions of C++."""


def storable(text: str) -> str:
    r"""The text as UTF-8 can hold it: U+FFFD stands for a surrogate without its other half.

    >>> storable("a\ud800b") == "a\ufffdb"
    True
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text, or its beginning and how long it was.

    >>> shortened("abcdefgh", 3)
    'abc ... (8 characters)'
    """
    return text if len(text) <= most else f"{text[:most]} ... ({len(text)} characters)"


def one_line(text: str) -> str:
    """A text of others as one short line."""
    return storable(" ".join(shortened(text).split()))


def named_message_of(error: BaseException, when: str = "") -> str:
    """Class and message of an error; the class alone where it says nothing.

    >>> named_message_of(ValueError("odd")), named_message_of(ValueError(), " while timing")
    ('ValueError: odd', 'ValueError while timing')
    """
    name, said = type(error).__name__, message_of(error)
    return f"{name}{when}" if said == name else f"{name}{when}: {said}"


def message_of(error: BaseException) -> str:
    r"""What an error says in one short line; its class where it says nothing, or cannot.

    >>> message_of(RuntimeError("too long\nException raised from unpack at numbers.h:79\n"))
    'too long'
    """
    try:
        said, _, _ = str(error).partition(STACK)
        return one_line(said) or type(error).__name__
    except Exception:  # noqa: BLE001  the text of an error is code of others, too
        return type(error).__name__
