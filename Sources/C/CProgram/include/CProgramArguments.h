#ifndef KEYHAUL_CPROGRAMARGUMENTS_H
#define KEYHAUL_CPROGRAMARGUMENTS_H

/// The arguments that this process was started with, the program's name first, up to a NULL.
///
/// NULL where the C library does not hand them over before `main`.
char *const *keyhaul_program_arguments(void);

/// The environment of this process, each variable as its name, an equals sign and its value, up to a NULL.
///
/// NULL where there is none at all.
char *const *keyhaul_program_environment(void);

#endif
