"""The program: `python -m bench`, and `bench` where it is installed."""

from bench.cli.hidden_packages import refuse_hidden_packages
from bench.cli.light_start import allow_light_start


def program() -> None:
    """Run the command line as a process of its own."""
    refuse_hidden_packages()
    allow_light_start()
    from bench.cli.main import main  # noqa: PLC0415  after what it must not import too early

    main()


if __name__ == "__main__":
    program()
