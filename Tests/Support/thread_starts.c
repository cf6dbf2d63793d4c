// Replaces the C library's pthread_create (LD_PRELOAD), and lets some of the calls fail with EAGAIN, as if the system
// had no more threads. libdispatch's own threads also count.
//
//   KEYHAUL_THREADS_FIRST  the number of the first refused start, from 1; 0 refuses none
//   KEYHAUL_THREADS_LAST   the number of the last refused start; 0 refuses all later ones
//   KEYHAUL_THREADS_COUNT  a file to which the program writes the numbers of starts and of refused starts when it ends
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long count, refused;
static long first, last;

// Returns the number in an environment variable, or 0.
static long setting(const char *name) {
  const char *text = getenv(name);
  return text ? atol(text) : 0;
}

__attribute__((constructor)) static void start(void) {
  first = setting("KEYHAUL_THREADS_FIRST");
  last = setting("KEYHAUL_THREADS_LAST");
}

__attribute__((destructor)) static void end(void) {
  const char *text = getenv("KEYHAUL_THREADS_COUNT");
  if (!text) return;
  char line[64];
  int length = snprintf(line, sizeof line, "%ld %ld\n", atomic_load(&count), atomic_load(&refused));
  int file = open(text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file >= 0 && write(file, line, length) != length) abort();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *context) {
  long number = atomic_fetch_add(&count, 1) + 1;
  if (first && number >= first && (!last || number <= last)) {
    atomic_fetch_add(&refused, 1);
    return EAGAIN;
  }
  typeof(&pthread_create) real = (typeof(&pthread_create))dlsym(RTLD_NEXT, "pthread_create");
  if (!real) abort();
  return real(thread, attributes, work, context);
}
