#ifndef KEYHAUL_CTHREADSTACK_H
#define KEYHAUL_CTHREADSTACK_H

/// Overwrites the 64 KiB of the calling thread's stack below its caller's frame.
///
/// glibc keeps the stack of a thread that ended for the next one, its last pages as they are. What was put there is still on
/// it: registers that the compiler had no room for, and all vector registers, which the dynamic linker saves where a
/// library's function is called for the first time. A key of 32 bytes is copied through one of those.
void keyhaul_wipe_stack(void);

#endif
