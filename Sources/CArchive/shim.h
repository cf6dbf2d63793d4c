#ifndef KEYHAUL_CARCHIVE_SHIM_H
#define KEYHAUL_CARCHIVE_SHIM_H
#include <archive.h>
#include <archive_entry.h>
#endif
