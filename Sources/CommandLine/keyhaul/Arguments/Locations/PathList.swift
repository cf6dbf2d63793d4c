import KeyhaulKit
import SystemPackage

/// Reads paths from a file or stream on demand: one per line, or separated by NUL bytes as `find -print0` writes them.
/// The separator is NUL if the first bytes contain one.
final class PathList {
  /// The maximum length of a path, in bytes. No system allows longer paths.
  static let maximumByteCount = 65_536

  private let name: String
  private let file: OwnedFileDescriptor?
  private let descriptor: FileDescriptor
  private let system = FileSystem.real
  /// The bytes that were read from the file. Paths before `start` were already returned.
  private var buffered: [UInt8] = []
  private var start = 0
  private var isAtEnd = false
  /// Whether the start of the list was checked for a byte order mark.
  private var hasCheckedByteOrderMark = false
  private var separator: UInt8?

  /// Opens the list.
  ///
  /// - Parameter path: The path of the list; `-` is standard input.
  init(_ path: String, in session: Session) throws(CommandError) {
    name = InputFile.name(path)
    guard path != "-" else {
      try session.claimStandardInput(for: "the list of paths")
      file = nil
      descriptor = .standardInput
      return
    }
    do throws(Errno) {
      // Opening a named pipe waits for its writer, so the first signal must end the program.
      let openFile = try Interruption.exitingImmediatelyOnSignal { () throws(Errno) in
        try FileSystem.real.openForReading(path, .waits)
      }
      descriptor = openFile.raw
      file = consume openFile
    } catch {
      throw CommandError(
        error.isNotFound ? .notFound : .failed, "cannot read the list of paths", why: "\(path): \(error.reason)",
        try: "check the path", of: error)
    }
  }

  /// Returns the next path; `nil` after the last. Skips empty paths.
  func next() throws(CommandError) -> QueuedBackup? {
    while let bytes = try nextBytes() {
      guard !bytes.isEmpty else { continue }
      guard let path = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
        let escapedPath = UntrustedText.escaped(String(decoding: bytes, as: UTF8.self))
        return QueuedBackup(
          escapedPath,
          fault: .usage(
            "a path in the list cannot be read", why: "it is not UTF-8, or has a NUL in it", try: "rename the file"))
      }
      return QueuedBackup(path)
    }
    return nil
  }

  /// Returns the bytes up to the next separator; `nil` at the end.
  private func nextBytes() throws(CommandError) -> ArraySlice<UInt8>? {
    while true {
      if let separator, let end = buffered[start...].firstIndex(of: separator) {
        defer { start = end + 1 }
        return buffered[start..<end]
      }
      guard !isAtEnd else {
        defer { start = buffered.count }
        return start < buffered.count ? buffered[start...] : nil
      }
      try fill()
    }
  }

  /// Reads more bytes. Removes the paths that were already returned.
  private func fill() throws(CommandError) {
    buffered.removeFirst(start)
    start = 0
    guard buffered.count <= Self.maximumByteCount else {
      throw CommandError(
        .refused, "refused to read the list of paths",
        why: "\(name) has a path of more than \(HumanReadable.bytes(Self.maximumByteCount))", try: "the right file")
    }
    var buffer = [UInt8](repeating: 0, count: Self.maximumByteCount)
    let descriptor = descriptor
    try DescriptorInput.waitForInput(descriptor.rawValue)
    let count: Int
    do throws(Errno) {
      count = try buffer.withUnsafeMutableBytes { buffer in
        Result { () throws(Errno) in try system.read(descriptor, into: buffer) }
      }.get()
    } catch {
      try Interruption.check()
      guard error != .interrupted else { return }
      throw CommandError(
        .failed, "cannot read the list of paths", why: "\(name): \(error.reason)", try: "check the path", of: error)
    }
    buffered += buffer[..<count]
    isAtEnd = count == 0
    if !hasCheckedByteOrderMark { dropByteOrderMark() }
    if separator == nil { separator = detectedSeparator() }
  }

  /// Removes a byte order mark from the start, once enough bytes were read to recognize it.
  private func dropByteOrderMark() {
    let mark = UTF8Scalars.byteOrderMark
    let mayBePartOfMark = buffered.count < mark.count && mark.starts(with: buffered)
    guard isAtEnd || !mayBePartOfMark else { return }
    buffered.removeFirst(UTF8Scalars.byteOrderMarkCount(of: buffered))
    hasCheckedByteOrderMark = true
  }

  /// Returns the separator; `nil` until a NUL byte, the end of a line or the end of the list was read.
  private func detectedSeparator() -> UInt8? {
    if buffered.contains(0) { return 0 }
    return isAtEnd || buffered.contains(UInt8(ascii: "\n")) ? UInt8(ascii: "\n") : nil
  }
}
