#ifndef KEYHAUL_CTHREADS_H
#define KEYHAUL_CTHREADS_H

#include <stddef.h>

/// Starts a detached thread.
///
/// Returns 0, or an error number: EAGAIN if the system allows no more threads or has no memory for the stack.
int keyhaul_start_thread(void *_Nullable (*_Nonnull work)(void *_Nullable), void *_Nullable context, size_t stack_bytes);

/// Keeps the caller's dispatch queue until the process ends.
///
/// To free a queue with its own value (`dispatch_queue_set_specific`), libdispatch starts a thread. If the system
/// refuses the thread, libdispatch waits forever. On Apple's systems, the kernel has threads for this, and nothing is
/// kept.
void keyhaul_keep_dispatch_queue(void);

/// Overwrites the 64 KiB of the calling thread's stack below its caller's frame.
///
/// glibc reuses the stack of an ended thread for the next one, and does not clear its last pages. They still contain
/// registers that the compiler spilled. They also contain all vector registers, which the dynamic linker saves at the
/// first call of a library function. A key of 32 bytes is copied through a vector register.
void keyhaul_wipe_stack(void);

#endif
