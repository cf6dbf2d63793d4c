import KeyhaulKit
import SystemPackage

/// Paths from a file or a stream, read as they are asked for: each on a line, or each with a NUL behind it, as
/// `find -print0` writes them. A NUL near the start says which.
final class PathList {
  /// The longest path that is read, in bytes; no system has longer ones.
  static let maximumByteCount = 65_536

  private let name: String
  private let file: OwnedFileDescriptor?
  private let descriptor: FileDescriptor
  private let system = FileSystem.real
  private var waiting: [UInt8] = []
  private var start = 0
  private var isAtEnd = false
  /// Whether a byte order mark at the start was looked for.
  private var isPastMark = false
  private var separator: UInt8?

  /// - Parameter path: `-` is standard input.
  init(_ path: String, in session: Session) throws(CommandFailure) {
    name = InputFile.name(path)
    guard path != "-" else {
      try session.claimStandardInput(for: "the list of paths")
      file = nil
      descriptor = .standardInput
      return
    }
    do throws(Errno) {
      // A pipe with a name waits here for whoever fills it.
      let opened = try Interruption.leavingAtOnce { () throws(Errno) in
        try FileSystem.real.openForReading(path, .waits)
      }
      descriptor = opened.raw
      file = consume opened
    } catch {
      throw CommandFailure(
        error.isNotFound ? .notFound : .failed, "cannot read the list of paths", why: "\(path): \(error.reason)",
        try: "check the path", of: error)
    }
  }

  /// The next path; `nil` behind the last. Empty ones are passed over.
  func next() throws(CommandFailure) -> BackupPlace? {
    while let bytes = try nextBytes() {
      guard !bytes.isEmpty else { continue }
      guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
        let shown = UntrustedText.escaped(String(decoding: bytes, as: UTF8.self))
        return BackupPlace(
          shown,
          fault: .usage(
            "a path in the list cannot be read", why: "it is not UTF-8, or has a NUL in it", try: "rename the file"))
      }
      return BackupPlace(text)
    }
    return nil
  }

  private func nextBytes() throws(CommandFailure) -> ArraySlice<UInt8>? {
    while true {
      if let separator, let end = waiting[start...].firstIndex(of: separator) {
        defer { start = end + 1 }
        return waiting[start..<end]
      }
      guard !isAtEnd else {
        defer { start = waiting.count }
        return start < waiting.count ? waiting[start...] : nil
      }
      try fill()
    }
  }

  private func fill() throws(CommandFailure) {
    waiting.removeFirst(start)
    start = 0
    guard waiting.count <= Self.maximumByteCount else {
      throw CommandFailure(
        .refused, "refused to read the list of paths",
        why: "\(name) has a path of more than \(HumanReadable.bytes(Self.maximumByteCount))", try: "the right file")
    }
    var buffer = [UInt8](repeating: 0, count: Self.maximumByteCount)
    let descriptor = descriptor
    try ByteStream.waitForInput(descriptor.rawValue)
    let count: Int
    do throws(Errno) {
      count = try buffer.withUnsafeMutableBytes { buffer in
        Result { () throws(Errno) in try system.read(descriptor, into: buffer) }
      }.get()
    } catch {
      try Interruption.check()
      guard error != .interrupted else { return }
      throw CommandFailure(
        .failed, "cannot read the list of paths", why: "\(name): \(error.reason)", try: "check the path", of: error)
    }
    waiting += buffer[..<count]
    isAtEnd = count == 0
    let mark = UTF8Scalars.byteOrderMark
    if !isPastMark, isAtEnd || waiting.count >= mark.count || !mark.starts(with: waiting) {
      waiting.removeFirst(UTF8Scalars.byteOrderMarkCount(of: waiting))
      isPastMark = true
    }
    if separator == nil, let found = kind(of: waiting) { separator = found }
  }

  /// What stands between paths, as far as can be told; once the list has come to its end, or a line has, it can.
  private func kind(of bytes: [UInt8]) -> UInt8? {
    if bytes.contains(0) { return 0 }
    return isAtEnd || bytes.contains(UInt8(ascii: "\n")) ? UInt8(ascii: "\n") : nil
  }
}
