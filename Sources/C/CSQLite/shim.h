#ifndef KEYHAUL_CSQLITE_SHIM_H
#define KEYHAUL_CSQLITE_SHIM_H
#include <sqlite3.h>
#include <stdint.h>
#include <time.h>

/* sqlite3_db_config is variadic, which Swift cannot call. Switches one boolean option; returns a result code. */
static inline int keyhaul_sqlite3_switch(sqlite3 *database, int option, int on) {
  return sqlite3_db_config(database, option, on, (int *)0);
}

/* The CPU time of this thread, in nanoseconds. */
static inline int64_t keyhaul_sqlite3_cpu_time(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return 0;
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int keyhaul_sqlite3_is_late(void *deadline) {
  return keyhaul_sqlite3_cpu_time() > *(const int64_t *)deadline;
}

/* Interrupts a statement of this thread when the thread's CPU time passes the deadline. Without a deadline,
   statements have no time limit. The deadline must outlive the statements. */
static inline void keyhaul_sqlite3_limit_time(sqlite3 *database, int64_t *deadline) {
  sqlite3_progress_handler(database, deadline ? 256 : 0, deadline ? keyhaul_sqlite3_is_late : 0, deadline);
}
#endif
