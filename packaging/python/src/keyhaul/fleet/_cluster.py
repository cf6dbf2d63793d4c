"""Start a cluster on this machine, with Dask settings for tasks that wait for a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import LocalCluster

# By default, Dask's processes measure themselves ten to a hundred times per second. An idle scheduler with two workers
# then uses a tenth of a core (measured). The tasks here only wait for the program.
QUIET: dict[str, Any] = {
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
}


def local_cluster(workers: int, threads: int = 2) -> LocalCluster:
    """Start a scheduler and workers that are reachable only from this machine. A killed worker is restarted.

    A worker has two threads, because they wait for the program, and the program sometimes waits for the disk.
    """
    import dask
    from distributed import LocalCluster

    dask.config.set(QUIET)
    return LocalCluster(
        n_workers=workers, threads_per_worker=threads, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
