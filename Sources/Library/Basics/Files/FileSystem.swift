package import SystemPackage

/// The one door to the file system. Nothing else of this project calls the system about files, but for SQLite, which has
/// its own.
///
/// Every call can be made to fail from outside, so that tests can break a change at each of its steps. Calls that a
/// signal interrupts are made again. A link is never followed at the last name of a path, except in one that the user
/// typed.
package struct FileSystem: Sendable {
  /// What the system is asked for.
  package enum Call: String, Sendable, Hashable, CaseIterable {
    case open, create, read, write, sync, syncFileSystem, close, rename, exchange, makeDirectory, permissions, remove,
      list, status, seek
    case lock, link
    /// A change that SQLite makes by itself.
    case database
  }

  /// What becomes of a call instead.
  package enum Fault: Sendable, Hashable {
    /// It fails with this reason and has no effect.
    case failure(Errno)
    /// A read or write handles only the first half of its bytes.
    case short
    /// It does nothing and says that it did, as `fsync` does on a disk that lies. A call that opens something is made.
    case omitted
  }

  /// Asked before each call; `nil` lets it through.
  private let intercept: (@Sendable (Call) -> Fault?)?

  package static let real = FileSystem(intercept: nil)

  package init(faults: @escaping @Sendable (Call) -> Fault?) { self.init(intercept: faults) }

  private init(intercept: (@Sendable (Call) -> Fault?)?) { self.intercept = intercept }

  /// Makes one call, again for as long as signals interrupt it.
  ///
  /// - Parameters:
  ///   - omitted: The answer of a call that is not made; `nil` where it has to be.
  ///   - body: Makes the call, and throws `Errno` alone.
  @discardableResult
  func perform<Answer>(
    _ call: Call, omitted: Answer? = nil, _ body: (_ isShort: Bool) throws -> Answer
  ) throws(Errno) -> Answer {
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

  /// A fault that is to be injected into a call whose effect must happen all the same, as with `close`.
  func fault(in call: Call) -> Errno? {
    if case .failure(let reason) = intercept?(call), reason != .interrupted { reason } else { nil }
  }

  /// Says that a change follows which SQLite makes by itself, so that a test can keep it from happening.
  package func announceDatabaseChange() throws(Errno) { try perform(.database, omitted: ()) { _ in } }

  /// Where temporary files go: `TMPDIR`, or else `/tmp`.
  package static var temporaryDirectory: String { SystemCalls.temporaryDirectory }
}
