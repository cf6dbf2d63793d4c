#ifndef KEYHAUL_CPROGRAMARGUMENTS_H
#define KEYHAUL_CPROGRAMARGUMENTS_H

/// Returns the arguments of this process, the program's name first, terminated by NULL.
///
/// Returns NULL if the C library does not provide them before `main`.
char *const *keyhaul_program_arguments(void);

/// Returns the environment of this process as texts such as `NAME=value`, terminated by NULL.
///
/// Returns NULL if there is no environment.
char *const *keyhaul_program_environment(void);

#endif
