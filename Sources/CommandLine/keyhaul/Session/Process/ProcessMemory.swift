import CProgram
import KeyhaulKit

/// The protection and release of this process's memory.
enum ProcessMemory {
  /// Disables core dumps, before the process has a secret. Child processes inherit the limit.
  ///
  /// It is not an error if the system refuses: a process that may read a dump may also read the memory.
  static func disableCoreDumps() { _ = keyhaul_refuse_dumps() }

  /// Makes the allocator return large blocks to the system when they are freed.
  static func enableLargeBlockRelease() { keyhaul_give_back_large_blocks() }

  /// Returns freed memory to the system, before the next large step begins.
  static func releaseFreeMemory() { keyhaul_give_back_free_memory() }

  /// Whether the system refuses to provide more memory. Safe in a signal handler.
  static var isExhausted: Bool { keyhaul_memory_is_used_up() != 0 }

  /// Overwrites every secret at the end of the process. Safe in a signal handler.
  static func wipeSecrets() { SecretArena.wipeAll() }
}
