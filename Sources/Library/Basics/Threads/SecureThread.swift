internal import CKeyhaul

/// Starts threads for work on secrets: the stack of the work is overwritten before the thread counts as ended.
///
/// This project starts threads only here. For most work, use `ParallelMap` or `BackgroundThread`, which wait for the
/// end of the work. Nothing here uses libdispatch's threads, because libdispatch waits forever if the system refuses a
/// thread.
package enum SecureThread {
  /// A function that starts a thread for a piece of work, as `start` does. Tests pass functions that refuse.
  package typealias Starter =
    @Sendable (_ work: @escaping @Sendable () -> Void, _ ended: @escaping @Sendable () -> Void) -> Bool

  /// The stack size: 8 MiB, as for a process's first thread on Linux and on Apple's systems.
  private static let stackByteCount = 8 << 20

  /// Starts a thread.
  ///
  /// - Parameters:
  ///   - work: The work, whose stack is overwritten at its end.
  ///   - ended: Called on the same thread after the work's stack was overwritten.
  /// - Returns: Whether the thread was started. If `false`, the system refused it, and neither closure is ever called.
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

  /// Runs a piece of work on another thread without waiting for its end. If no thread can be started, runs it on the
  /// caller's thread.
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

/// Control over dispatch queues that other libraries create.
package enum DispatchQueues {
  /// Keeps the caller's queue until the process ends. To free it, libdispatch would need a thread, and would wait
  /// forever if the system refused one.
  package static func keepCurrent() { keyhaul_keep_dispatch_queue() }
}
