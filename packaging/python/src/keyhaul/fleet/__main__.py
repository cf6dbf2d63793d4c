"""`python -m keyhaul.fleet` starts a run from a shell or a job script."""

from __future__ import annotations

import argparse
import sys

from ..passwords import PasswordCommand, PasswordFile, PasswordList, PasswordName, Sendable
from ._cluster import local_cluster
from ._run import Outcome, run


def main() -> int:
    """Run the commands. Return 0 if every backup ended with 0, otherwise 3."""
    outcome = _run_on_cluster(_parser().parse_args())
    failures = outcome.failures()
    for row in failures:
        # Names from a backup may contain terminal escapes, so they are printed escaped.
        print(f"{row['path']!r}: {row['id']}: {row['error']!r}: {row['why']!r}")
    count = outcome.backups.num_rows
    print(f"{count} backups, {len(failures)} with an error; {outcome.kept} kept; {outcome.seconds:.1f} s")
    return 3 if failures else 0


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m keyhaul.fleet",
        description="Check many backups on a Dask cluster, and write two Parquet tables.",
    )
    parser.add_argument("paths", nargs="+", help="a folder or an address that contains backups, or several backups")
    parser.add_argument("-o", "--out", required=True, help="the folder for backups.parquet and items.parquet")
    parser.add_argument("--verbs", default="verify,plan", help="any of inspect, verify and plan (default: %(default)s)")
    scheduler_options = parser.add_mutually_exclusive_group(required=True)
    scheduler_options.add_argument("--scheduler", help="the address of a scheduler: tcp://HOST:8786")
    scheduler_options.add_argument("--scheduler-file", help="the file with a scheduler's address")
    scheduler_options.add_argument("--workers", type=int, help="start a cluster on this machine with this many workers")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-name", help="a name in the worker's KEYHAUL_PASSWORDS file")
    password.add_argument("--password-file", help="a file on the worker")
    password.add_argument("--password-command", help="a command that the worker runs")
    password.add_argument(
        "--passwords", help="a file on the worker with the source of each password: PATTERN file:PATH on each line"
    )
    parser.add_argument(
        "--plain", action="append", default=[], metavar="PATTERN", help="paths of backups without a password: */plain-*"
    )
    parser.add_argument("--home", help="the folder of virtual devices, on the worker")
    parser.add_argument("--names", action="store_true", help="also write the items' names")
    parser.add_argument("--fresh", action="store_true", help="keep no rows of an earlier run")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds for a command (default: %(default)g)")
    parser.add_argument(
        "--checkpoint", type=float, default=60.0, help="seconds between writing the tables (default: %(default)g)"
    )
    return parser


def _run_on_cluster(arguments: argparse.Namespace) -> Outcome:
    """Connect to the scheduler, or start a cluster on this machine, and run the commands there."""
    from distributed import Client

    if arguments.workers:
        client = Client(local_cluster(arguments.workers))
    else:
        client = Client(arguments.scheduler, scheduler_file=arguments.scheduler_file)
    with client:
        return run(
            arguments.paths[0] if len(arguments.paths) == 1 else arguments.paths,
            client,
            verbs=arguments.verbs.split(","),
            passwords={**dict.fromkeys(arguments.plain), "*": _source(arguments)},
            out=arguments.out,
            resume=not arguments.fresh,
            names=arguments.names,
            home=arguments.home,
            timeout=arguments.timeout,
            checkpoint=arguments.checkpoint,
            progress=_progress if sys.stderr.isatty() else None,
        )


def _source(arguments: argparse.Namespace) -> Sendable | None:
    """Return the source of the passwords, or None if no option names one."""
    if arguments.password_name:
        return PasswordName(arguments.password_name)
    if arguments.passwords:
        return PasswordList(arguments.passwords)
    if arguments.password_file:
        return PasswordFile(arguments.password_file)
    return PasswordCommand(arguments.password_command) if arguments.password_command else None


def _progress(finished: int, total: int) -> None:
    """Overwrite the line with the number of finished backups."""
    print(f"\r{finished} of {total}", end="" if finished < total else "\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
