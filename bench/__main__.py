"""The program: `python -m bench`, and `bench` where it is installed."""

import signal
import sys


def program() -> None:
    """Run the command line as a process of its own."""
    try:  # an interrupt of an import ends as one of the command does
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # it came while it started over
        from bench.cli.hidden_packages import refuse_hidden_packages  # noqa: PLC0415  in the try
        from bench.cli.light_start import allow_light_start  # noqa: PLC0415  in the try

        refuse_hidden_packages()
        allow_light_start()
        from bench.cli.main import main  # noqa: PLC0415  after what it must not import too early

        main()
    except KeyboardInterrupt:  # before the command began
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(130)


if __name__ == "__main__":
    program()
