"""`python -m keyhaul.fleet`: starts a run from a shell or a job script."""

from __future__ import annotations

import argparse
import sys

from ..passwords import PasswordCommand, PasswordFile, PasswordName, Sendable
from ._cluster import local_cluster
from ._run import run


def main() -> int:
    """Runs, and returns 0 if every backup ended with 0, otherwise 3."""
    parser = argparse.ArgumentParser(
        prog="python -m keyhaul.fleet",
        description="Check many backups on a Dask cluster, and write two Parquet tables.",
    )
    parser.add_argument("paths", nargs="+", help="a folder or an address that contains backups, or several backups")
    parser.add_argument("-o", "--out", required=True, help="the folder for backups.parquet and items.parquet")
    parser.add_argument("--verbs", default="verify,plan", help="any of inspect, verify and plan (default: %(default)s)")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--scheduler", help="the address of a scheduler: tcp://HOST:8786")
    where.add_argument("--scheduler-file", help="the file with a scheduler's address")
    where.add_argument("--workers", type=int, help="start a cluster on this machine with this many workers")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-name", help="a name in the worker's KEYHAUL_PASSWORDS file")
    password.add_argument("--password-file", help="a file on the worker")
    password.add_argument("--password-command", help="a command that the worker runs")
    parser.add_argument(
        "--plain", action="append", default=[], metavar="PATTERN", help="paths of backups without a password: */plain-*"
    )
    parser.add_argument("--home", help="the folder of virtual devices, on the worker")
    parser.add_argument("--names", action="store_true", help="write the items' names too")
    parser.add_argument("--fresh", action="store_true", help="keep no rows of an earlier run")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds for a command (default: %(default)g)")
    parser.add_argument(
        "--checkpoint", type=float, default=60.0, help="seconds between writing the tables (default: %(default)g)"
    )
    chosen = parser.parse_args()

    from distributed import Client

    if chosen.workers:
        client = Client(local_cluster(chosen.workers))
    else:
        client = Client(chosen.scheduler, scheduler_file=chosen.scheduler_file)
    with client:
        done = run(
            chosen.paths[0] if len(chosen.paths) == 1 else chosen.paths,
            client,
            verbs=chosen.verbs.split(","),
            passwords={**dict.fromkeys(chosen.plain), "*": _source(chosen)},
            out=chosen.out,
            resume=not chosen.fresh,
            names=chosen.names,
            home=chosen.home,
            timeout=chosen.timeout,
            checkpoint=chosen.checkpoint,
            progress=_progress if sys.stderr.isatty() else None,
        )
    failures = done.failures()
    for row in failures:
        # Escaped: a name from a backup may contain terminal commands.
        print(f"{row['path']!r}: {row['id']}: {row['error']!r}: {row['why']!r}")
    print(f"{done.backups.num_rows} backups, {len(failures)} with an error; {done.kept} kept; {done.seconds:.1f} s")
    return 3 if failures else 0


def _source(chosen: argparse.Namespace) -> Sendable | None:
    if chosen.password_name:
        return PasswordName(chosen.password_name)
    if chosen.password_file:
        return PasswordFile(chosen.password_file)
    return PasswordCommand(chosen.password_command) if chosen.password_command else None


def _progress(done: int, total: int) -> None:
    print(f"\r{done} of {total}", end="" if done < total else "\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
