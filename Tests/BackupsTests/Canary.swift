import CSQLite
import Synchronization

/// A function of SQL, `canary`, that every connection of this process has from its opening on and that says how often it
/// was called: whoever evaluates a trigger, a view or an expression of a foreign database that names it is found out.
enum Canary {
  private static let calls = Atomic<Int>(0)

  /// Whether connections that are opened from now on have the function.
  static let isSet: Bool = {
    typealias Entry = @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32
    let entry: Entry = { connection, _, _ in
      // It may stand wherever a function may: in schemas that are not trusted, in indexes and computed columns.
      let flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS
      return sqlite3_create_function_v2(
        connection, "canary", -1, flags, nil,
        { context, _, _ in
          Canary.calls.add(1, ordering: .relaxed)
          sqlite3_result_int(context, 1)
        }, nil, nil, nil)
    }
    return sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self)) == SQLITE_OK
  }()

  /// How often it was called meanwhile.
  static func calls(during body: () throws -> Void) rethrows -> Int {
    let before = calls.load(ordering: .relaxed)
    try body()
    return calls.load(ordering: .relaxed) - before
  }
}
