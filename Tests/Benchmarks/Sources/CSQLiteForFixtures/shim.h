#ifndef KEYHAUL_CSQLITE_FOR_FIXTURES_H
#define KEYHAUL_CSQLITE_FOR_FIXTURES_H
#include <sqlite3.h>
#endif
