import CSQLite
import Synchronization

/// An SQL function `canary` that counts its calls in all connections of this process, to detect whether triggers,
/// views, or expressions of an untrusted database are evaluated.
enum CanaryFunction {
  private static let calls = Atomic<Int>(0)

  /// Whether the function is registered. The first use registers it for all later connections.
  static let isRegistered: Bool = {
    typealias Entry = @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32
    let entry: Entry = { connection, _, _ in
      // The function is allowed anywhere: in untrusted schemas, indexes, and computed columns.
      let flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS
      return sqlite3_create_function_v2(
        connection, "canary", -1, flags, nil,
        { context, _, _ in
          CanaryFunction.calls.add(1, ordering: .relaxed)
          sqlite3_result_int(context, 1)
        }, nil, nil, nil)
    }
    return sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self)) == SQLITE_OK
  }()

  /// Returns the number of calls during the closure.
  static func calls(during body: () throws -> Void) rethrows -> Int {
    let callsBefore = calls.load(ordering: .relaxed)
    try body()
    return calls.load(ordering: .relaxed) - callsBefore
  }
}
