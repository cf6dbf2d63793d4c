#ifndef KEYHAUL_BENCHMARKS_OPENSSL_SHIM_H
#define KEYHAUL_BENCHMARKS_OPENSSL_SHIM_H
#include <openssl/evp.h>
#endif
