internal import CKeyhaul
import Foundation

/// A thread for work that secrets may pass through: what the work left on its stack is overwritten before it counts as ended.
///
/// The one place where this project starts threads. Most work is better off with `ParallelMap` or `SideWork`, which wait
/// for its end.
package enum WorkThread {
  /// As of the first thread on Linux and Apple's systems.
  private static let stackByteCount = 8 << 20

  /// Starts a thread.
  ///
  /// - Parameters:
  ///   - work: What it does.
  ///   - ended: Called on it when nothing of the work is left.
  package static func start(_ work: @escaping @Sendable () -> Void, ended: @escaping @Sendable () -> Void) {
    let thread = Thread {
      work()
      keyhaul_wipe_stack()
      ended()
    }
    thread.stackSize = stackByteCount
    thread.start()
  }
}
