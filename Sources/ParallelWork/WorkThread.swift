internal import CThreadStack
import Foundation

/// A thread of this project: each has a stack as large as that of the first one, and leaves nothing on it.
enum WorkThread {
  /// As of the first thread on Linux and Apple's systems.
  private static let stackByteCount = 8 << 20

  /// Starts a thread.
  ///
  /// - Parameters:
  ///   - work: What it does.
  ///   - ended: Called on it at its end, when what the work left on the stack was overwritten.
  static func start(_ work: @escaping @Sendable () -> Void, ended: @escaping @Sendable () -> Void) {
    let thread = Thread {
      work()
      keyhaul_wipe_stack()
      ended()
    }
    thread.stackSize = stackByteCount
    thread.start()
  }
}
