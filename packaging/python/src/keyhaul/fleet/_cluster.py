"""A cluster on this machine, and what Dask is told where its tasks wait for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import LocalCluster

# Dask's processes look at themselves, at their memory and at what their tasks run, ten to a hundred times a second: measured,
# a scheduler and two workers that do nothing take a tenth of a core. What works here is the program.
QUIET: dict[str, Any] = {
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
}


def local_cluster(workers: int, threads: int = 2) -> LocalCluster:
    """A scheduler and workers on this machine, which start again where they are killed, reachable from it alone.

    Two threads a worker: they wait for the program, which waits for the disk now and then.
    """
    import dask
    from distributed import LocalCluster

    dask.config.set(QUIET)
    return LocalCluster(
        n_workers=workers, threads_per_worker=threads, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
