"""Check many backups on a Dask cluster, and write one row for each backup and each item into Parquet files.

    from distributed import Client
    from keyhaul import PasswordName, fleet

    outcome = fleet.run("backups/", Client("tcp://scheduler:8786"), passwords=PasswordName("family"), out="fleet/")

Each worker calls the program once for a command and a few backups. No password and no item's value is sent between
machines. The worker reads the password from its source (`PasswordFile`, `PasswordCommand`, `PasswordName` or
`PasswordList`).
"""

from . import _requirements as _requirements
from ._cluster import QUIET, local_cluster
from ._paths import backups_in, listed
from ._run import Outcome, run
from ._tables import BACKUPS, ITEMS, NAMES

__all__ = ["BACKUPS", "ITEMS", "NAMES", "QUIET", "Outcome", "backups_in", "listed", "local_cluster", "run"]
