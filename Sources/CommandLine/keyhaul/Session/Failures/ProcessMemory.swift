import CProgram
import KeyhaulKit

/// What others may see of the memory of this process, and what is left in it.
enum ProcessMemory {
  /// Switches core dumps off, before there is a secret; programs that are started inherit the limit.
  ///
  /// Where the system refuses, that is no error: whoever may then read the memory may read it anyway.
  static func guardAgainstDumps() { _ = keyhaul_refuse_dumps() }

  /// Has the lists of a large keychain go back to the system where they are given back, and not stay with the process.
  static func giveBackLargeBlocks() { keyhaul_give_back_large_blocks() }

  /// Gives back what one large step has left before the next one begins.
  static func giveBackFreeMemory() { keyhaul_give_back_free_memory() }

  /// Whether the system gives no more memory. Does nothing that a signal handler may not do.
  static var isUsedUp: Bool { keyhaul_memory_is_used_up() != 0 }

  /// Overwrites every secret, at the end of the process. Does nothing that a signal handler may not do.
  static func wipeSecrets() { SecretArena.wipeAll() }
}
