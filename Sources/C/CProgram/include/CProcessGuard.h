#ifndef KEYHAUL_CPROCESSGUARD_H
#define KEYHAUL_CPROCESSGUARD_H

/// Keeps the memory of this process out of core dumps and, where the system can, from other processes of the same user.
///
/// Returns 0 where all of it was done, -1 where the system refused a part.
int keyhaul_refuse_dumps(void);

/// Whether the system refuses another 16 MiB. Safe in a signal handler: it makes only two system calls.
int keyhaul_memory_is_used_up(void);

/// Gives memory that is free back to the system, also what lies between blocks that are used.
void keyhaul_give_back_free_memory(void);

/// Has every block of a megabyte and more go back to the system when it is given back.
void keyhaul_give_back_large_blocks(void);

#endif
