#ifndef KEYHAUL_CUTF8PROC_SHIM_H
#define KEYHAUL_CUTF8PROC_SHIM_H
#include <utf8proc.h>
#endif
