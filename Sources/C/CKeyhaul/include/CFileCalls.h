#ifndef KEYHAUL_CFILECALLS_H
#define KEYHAUL_CFILECALLS_H

/// Exchanges two names in a folder in one step.
///
/// Returns 0, or -1 with the reason in `errno`: ENOSYS if the system has no such call.
int keyhaul_exchange(int folder, const char *first, const char *second);

/// Renames a file or folder to a new name that must not exist yet.
///
/// Returns 0, or -1 with the reason in `errno`: EEXIST if the name exists, ENOSYS if the system has no such call.
int keyhaul_rename_new(int folder, const char *old, const char *new);

/// Syncs all data that was written to the file system of an open file or folder.
///
/// Returns 0, or -1 with the reason in `errno`: ENOSYS if the system has no such call.
int keyhaul_sync_file_system(int file);

#endif
