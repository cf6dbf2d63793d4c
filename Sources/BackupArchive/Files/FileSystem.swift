import CArchive

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A system call that failed, with its error number.
struct SystemFailure: Error, Equatable {
  let number: Int32

  var text: String { String(cString: strerror(number)).lowercased() }
}

/// The one door through which this module reaches the file system.
///
/// Every call can be made to fail from outside, so that tests can break a write at each of its steps. Calls that a
/// signal interrupts are made again. Nothing here follows a symbolic link, except in a path that the user typed.
package struct FileSystem: Sendable {
  package enum Call: String, Sendable, Hashable {
    case open, read, write, sync, close, rename, exchange, makeDirectory, remove, list, status, seek
  }

  package enum Fault: Sendable, Hashable {
    /// The call fails with this error number and has no effect.
    case failure(Int32)
    /// A read or write handles only the first half of its bytes.
    case short
    /// The call does nothing and says that it did, as `fsync` does on a disk that lies. Only for calls whose result is
    /// no descriptor.
    case omitted
  }

  /// Asked before each call; `nil` lets it through.
  private let intercept: (@Sendable (Call) -> Fault?)?

  package static let real = FileSystem(intercept: nil)

  package init(faults: @escaping @Sendable (Call) -> Fault?) { self.init(intercept: faults) }

  private init(intercept: (@Sendable (Call) -> Fault?)?) { self.intercept = intercept }

  /// Makes one call, again for as long as signals interrupt it; a negative result is a failure.
  @discardableResult
  func perform<Result: SignedInteger>(
    _ call: Call, _ body: (_ short: Bool) -> Result
  ) throws(SystemFailure) -> Result {
    while true {
      var short = false
      switch intercept?(call) {
      case .failure(EINTR): continue
      case .failure(let number): throw SystemFailure(number: number)
      case .short: short = true
      case .omitted: return 0
      case nil: break
      }
      let result = body(short)
      if result >= 0 { return result }
      let number = errno
      if number != EINTR { throw SystemFailure(number: number) }
    }
  }

  /// Whether a fault is to be injected into a call whose effect must happen all the same, as with `close`.
  func fault(in call: Call) -> SystemFailure? {
    if case .failure(let number) = intercept?(call), number != EINTR { SystemFailure(number: number) } else { nil }
  }
}

/// An open file or folder, closed when its owner lets go of it.
struct Descriptor: ~Copyable {
  let raw: Int32

  /// Closes now and reports what only closing can tell, such as a write that a network file system refused late.
  consuming func close(_ system: FileSystem) throws(SystemFailure) {
    let raw = self.raw
    discard self
    let result = closeDescriptor(raw)
    let number = errno
    if let fault = system.fault(in: .close) { throw fault }
    if result < 0, number != EINTR { throw SystemFailure(number: number) }
  }

  deinit { _ = closeDescriptor(raw) }
}

private func closeDescriptor(_ raw: Int32) -> Int32 { close(raw) }

/// What stands at a place of the file system.
struct FileStatus {
  enum Kind { case file, directory, other }
  let kind: Kind
  let byteCount: Int64
  /// Who may do what, without the bits of its kind.
  let permissions: UInt32
  let owner: UInt32
  let group: UInt32

  /// Whether whoever runs this program owns it.
  var isOwn: Bool { owner == geteuid() }

  init(_ status: stat) {
    kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .directory
      default: .other
      }
    byteCount = Int64(status.st_size)
    permissions = UInt32(status.st_mode) & 0o7777
    owner = status.st_uid
    group = status.st_gid
  }
}

extension SystemFailure {
  /// Whether it says that nothing is there.
  var isAbsence: Bool { number == ENOENT || number == ENOTDIR }
}
