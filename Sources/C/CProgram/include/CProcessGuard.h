#ifndef KEYHAUL_CPROCESSGUARD_H
#define KEYHAUL_CPROCESSGUARD_H

/// Excludes the memory of this process from core dumps, and hides it from other processes of the same user if possible.
///
/// Returns 0, or -1 if the system refused a part of this.
int keyhaul_refuse_dumps(void);

/// Returns whether the system refuses another 16 MiB. Safe in a signal handler: it makes only two system calls.
int keyhaul_memory_is_used_up(void);

/// Returns free memory to the system, including pages between used blocks.
void keyhaul_give_back_free_memory(void);

/// Makes every block of at least one megabyte return to the system when it is freed.
void keyhaul_give_back_large_blocks(void);

#endif
