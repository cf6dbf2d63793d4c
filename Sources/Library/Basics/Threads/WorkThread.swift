internal import CKeyhaul

/// A thread for work that secrets may pass through: what the work left on its stack is overwritten before it counts as ended.
///
/// The one place where this project starts threads. Most work is better off with `ParallelMap` or `SideWork`, which wait
/// for its end. Nothing here uses libdispatch's threads: it waits without end for a thread that the system refuses.
package enum WorkThread {
  /// Starts a thread for a piece of work, as `start` does. Tests have their own, which refuse.
  package typealias Starter =
    @Sendable (_ work: @escaping @Sendable () -> Void, _ ended: @escaping @Sendable () -> Void) -> Bool

  /// As of the first thread on Linux and Apple's systems.
  private static let stackByteCount = 8 << 20

  /// Starts a thread.
  ///
  /// - Parameters:
  ///   - work: What it does.
  ///   - ended: Called on it when nothing of the work is left.
  /// - Returns: Whether the thread runs. If `false`, the system has refused it, and neither closure is ever called.
  package static func start(_ work: @escaping @Sendable () -> Void, ended: @escaping @Sendable () -> Void) -> Bool {
    let body = Unmanaged.passRetained(Body(work, ended))
    let status = keyhaul_start_thread(
      { context in
        guard let context else { return nil }
        Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
        return nil
      }, body.toOpaque(), stackByteCount)
    if status != 0 { body.release() }
    return status == 0
  }

  /// Does a piece of work on another thread, or on the caller's if no thread can be started. Nobody waits for its end.
  package static func detach(_ work: @escaping @Sendable () -> Void) {
    if !start(work, ended: {}) { work() }
  }

  private final class Body: Sendable {
    private let work: @Sendable () -> Void
    private let ended: @Sendable () -> Void

    init(_ work: @escaping @Sendable () -> Void, _ ended: @escaping @Sendable () -> Void) {
      (self.work, self.ended) = (work, ended)
    }

    func run() {
      work()
      keyhaul_wipe_stack()
      ended()
    }
  }
}

/// The queues of libdispatch that other libraries make.
package enum DispatchQueues {
  /// Keeps the queue that runs the caller until the process ends: to free it, libdispatch would need a thread, and would wait
  /// without end if the system refused one.
  package static func keepCurrent() { keyhaul_keep_dispatch_queue() }
}
