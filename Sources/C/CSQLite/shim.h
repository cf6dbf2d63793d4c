#ifndef KEYHAUL_CSQLITE_SHIM_H
#define KEYHAUL_CSQLITE_SHIM_H
#include <sqlite3.h>

/* sqlite3_db_config is variadic, which Swift cannot call. Switches one boolean option; returns a result code. */
static inline int keyhaul_sqlite3_switch(sqlite3 *database, int option, int on) {
  return sqlite3_db_config(database, option, on, (int *)0);
}
#endif
