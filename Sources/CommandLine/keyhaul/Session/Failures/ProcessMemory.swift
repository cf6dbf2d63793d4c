import CProgram
import KeyhaulKit

/// Protection and release of this process's memory.
enum ProcessMemory {
  /// Disables core dumps, before the process has a secret. Child processes inherit the limit.
  ///
  /// A refusal by the system is not an error: a process that may read a dump may also read the memory.
  static func guardAgainstDumps() { _ = keyhaul_refuse_dumps() }

  /// Makes the allocator return the lists of a large keychain to the system when they are freed.
  static func giveBackLargeBlocks() { keyhaul_give_back_large_blocks() }

  /// Returns the memory that a large step freed to the system, before the next step begins.
  static func giveBackFreeMemory() { keyhaul_give_back_free_memory() }

  /// Whether the system refuses more memory. Safe in a signal handler.
  static var isUsedUp: Bool { keyhaul_memory_is_used_up() != 0 }

  /// Overwrites every secret, at the end of the process. Safe in a signal handler.
  static func wipeSecrets() { SecretArena.wipeAll() }
}
