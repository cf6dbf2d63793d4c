#ifndef KEYHAUL_CTHREADS_H
#define KEYHAUL_CTHREADS_H

#include <stddef.h>

/// Starts a thread that nobody joins.
///
/// Returns 0, or the number of the error: EAGAIN if the system allows no more threads or has no memory for the stack.
int keyhaul_start_thread(void *_Nullable (*_Nonnull work)(void *_Nullable), void *_Nullable context, size_t stack_bytes);

/// Keeps the dispatch queue that runs the caller for as long as the process lives.
///
/// libdispatch starts a thread to free a queue with a value of its own (`dispatch_queue_set_specific`), and waits without end for a
/// thread that the system refuses. On Apple's systems the kernel has threads for this, and nothing is kept.
void keyhaul_keep_dispatch_queue(void);

/// Overwrites the 64 KiB of the calling thread's stack below its caller's frame.
///
/// glibc keeps the stack of a thread that ended for the next one, its last pages as they are. What was put there is still on
/// it: registers that the compiler had no room for, and all vector registers, which the dynamic linker saves where a
/// library's function is called for the first time. A key of 32 bytes is copied through one of those.
void keyhaul_wipe_stack(void);

#endif
