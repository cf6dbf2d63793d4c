package import SystemPackage

/// All access to the file system, except SQLite's own.
///
/// Tests can make every call fail, to interrupt a change at each of its steps. Calls that a signal interrupts are
/// repeated. A link at the end of a path is followed only in a path that the user entered.
package struct FileSystem: Sendable {
  /// A kind of system call.
  package enum Call: String, Sendable, Hashable, CaseIterable {
    case open, create, read, write, sync, syncFileSystem, close, rename, exchange, makeDirectory, permissions, remove,
      list, status, seek
    case lock, link
    /// A change that SQLite makes on its own.
    case database
  }

  /// A failure that a test injects into a call.
  package enum InjectedFault: Sendable, Hashable {
    /// The call fails for this reason and has no effect.
    case failure(Errno)
    /// A read or write handles only the first half of its bytes.
    case short
    /// The call has no effect but reports success, like `fsync` on a disk that does not sync. A call that opens
    /// something is still made.
    case omitted
  }

  /// Called before each call. Returns the fault to inject, or `nil` to make the call.
  private let intercept: (@Sendable (Call) -> InjectedFault?)?

  package static let real = FileSystem(intercept: nil)

  package init(faults: @escaping @Sendable (Call) -> InjectedFault?) { self.init(intercept: faults) }

  private init(intercept: (@Sendable (Call) -> InjectedFault?)?) { self.intercept = intercept }

  /// Makes a call, and repeats it while signals interrupt it.
  ///
  /// - Parameters:
  ///   - call: The kind of call, for injected faults.
  ///   - omitted: The result if a test omits the call (`InjectedFault.omitted`); `nil` if the call is made even then.
  ///   - body: Makes the call; throws only `Errno`.
  @discardableResult
  func perform<Value>(
    _ call: Call, omitted: Value? = nil, _ body: (_ isShort: Bool) throws -> Value
  ) throws(Errno) -> Value {
    while true {
      var isShort = false
      switch intercept?(call) {
      case .failure(.interrupted): continue
      case .failure(let reason): throw reason
      case .short: isShort = true
      case .omitted: if let omitted { return omitted }
      case nil: break
      }
      do {
        return try body(isShort)
      } catch {
        let reason = error as? Errno ?? .ioError
        if reason != .interrupted { throw reason }
      }
    }
  }

  /// Returns the error to inject into a call that must still take effect, such as `close`.
  func fault(in call: Call) -> Errno? {
    if case .failure(let reason) = intercept?(call), reason != .interrupted { reason } else { nil }
  }

  /// Announces a change that SQLite is about to make on its own, so that a test can prevent it.
  package func announceDatabaseChange() throws(Errno) { try perform(.database, omitted: ()) { _ in } }

  /// The directory for temporary files: `TMPDIR`, or else `/tmp`.
  package static var temporaryDirectory: String { SystemCalls.temporaryDirectory }
}
