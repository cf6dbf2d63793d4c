import KeychainFormats

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A file that the user names as input and that is no archive: a saved plan, a fixture.
package enum InputFile {
  /// What it is called in errors.
  package static func name(_ path: String) -> String { path == "-" ? "standard input" : path }

  /// Reads it whole; `-` is standard input.
  ///
  /// - Parameter what: "the plan", for errors.
  package static func read(
    _ path: String, atMost limit: Int, what: String, in session: Session
  ) throws(CommandFailure) -> [UInt8] {
    if path == "-" {
      try session.claimStandardInput(for: what)
      return try drain(0, name: name(path), atMost: limit, what: what)
    }
    // Not blocking: a named pipe without a writer must not hang.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    guard descriptor >= 0 else {
      let error = SystemError.last
      throw CommandFailure(
        error.isAbsence ? .notFound : .failed, "cannot read \(what)", why: "\(path): \(error.reason)",
        try: "check the path")
    }
    defer { close(descriptor) }
    var status = stat()
    // S_IFMT and S_IFREG, as POSIX numbers them.
    guard fstat(descriptor, &status) == 0, status.st_mode & 0o170000 == 0o100000 else {
      throw .usage("cannot read \(what)", why: "\(path) is not a regular file", try: "a file")
    }
    return try drain(descriptor, name: path, atMost: limit, what: what)
  }

  private static func drain(
    _ descriptor: Int32, name: String, atMost limit: Int, what: String
  ) throws(CommandFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let received = fill(&buffer, from: descriptor)
      guard received >= 0 else {
        let error = SystemError.last
        if error.code == EINTR {
          try Interruption.check()
          continue
        }
        throw CommandFailure(.failed, "cannot read \(what)", why: "\(name): \(error.reason)", try: "check the disk")
      }
      if received == 0 { return bytes }
      guard bytes.count + received <= limit else {
        throw CommandFailure(
          .refused, "refused to read \(what)", why: "\(name) is longer than \(Amounts.bytes(limit))",
          try: "the right file")
      }
      bytes += buffer[..<received]
    }
  }

  private static func fill(_ buffer: inout [UInt8], from descriptor: Int32) -> Int {
    buffer.withUnsafeMutableBytes { systemRead(descriptor, $0) }
  }
}

/// `read(2)`, by a name that no method of ours hides.
private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
  read(descriptor, buffer.baseAddress, buffer.count)
}
