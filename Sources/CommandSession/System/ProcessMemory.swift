import CProcessGuard
import KeychainFormats

/// What others may see of the memory of this process, and what is left in it.
package enum ProcessMemory {
  /// Switches core dumps off, before there is a secret; programs that are started inherit the limit.
  ///
  /// Where the system refuses, that is no error: whoever may then read the memory may read it anyway.
  package static func guardAgainstDumps() { _ = keyhaul_refuse_dumps() }

  /// Overwrites every secret, at the end of the process. Does nothing that a signal handler may not do.
  package static func wipeSecrets() { SecretArena.wipeAll() }
}
