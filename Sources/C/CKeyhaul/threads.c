#include "CThreads.h"

#include <pthread.h>
#include <string.h>

int keyhaul_start_thread(void *(*work)(void *), void *context, size_t stack_bytes) {
  pthread_attr_t attributes;
  int status = pthread_attr_init(&attributes);
  if (status != 0) return status;
  status = pthread_attr_setstacksize(&attributes, stack_bytes);
  if (status == 0) status = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  if (status == 0) status = pthread_create(&thread, &attributes, work, context);
  pthread_attr_destroy(&attributes);
  return status;
}

#ifdef __linux__
// Functions of libdispatch. Its headers require blocks, which C supports only with a flag.
extern void *dispatch_get_current_queue(void);
extern void dispatch_retain(void *object);

void keyhaul_keep_dispatch_queue(void) {
  void *queue = dispatch_get_current_queue();
  if (queue) dispatch_retain(queue);
}
#else
void keyhaul_keep_dispatch_queue(void) {}
#endif

__attribute__((noinline)) void keyhaul_wipe_stack(void) {
  unsigned char below[64 * 1024];
  memset(below, 0, sizeof below);
  // Marks the bytes as read, so that the compiler keeps the writes.
  __asm__ volatile("" : : "r"(below) : "memory");
}
