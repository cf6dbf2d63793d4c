#ifndef KEYHAUL_CPROCESSGUARD_H
#define KEYHAUL_CPROCESSGUARD_H

/// Keeps the memory of this process out of core dumps and, where the system can, from other processes of the same user.
///
/// Returns 0 where all of it was done, -1 where the system refused a part.
int keyhaul_refuse_dumps(void);

#endif
