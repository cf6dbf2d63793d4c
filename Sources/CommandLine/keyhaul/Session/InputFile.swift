import KeyhaulKit
import SystemPackage

/// An input file that is not a backup, such as a saved plan or a fixture.
enum InputFile {
  /// Returns the name of a file for messages.
  static func name(_ path: String) -> String { path == "-" ? "standard input" : path }

  /// Reads a complete file.
  ///
  /// - Parameters:
  ///   - path: The path of the file; `-` is standard input.
  ///   - limit: The maximum size in bytes.
  ///   - what: A noun phrase for messages: "the plan".
  static func read(
    _ path: String, atMost limit: Int, what: String, in session: Session
  ) throws(CommandError) -> [UInt8] {
    if path == "-" {
      try session.claimStandardInput(for: what)
      return try drain(.standardInput, name: name(path), atMost: limit, what: what)
    }
    let system = FileSystem.real
    let file: OwnedFileDescriptor
    do throws(Errno) {
      file = try system.openForReading(path)
    } catch {
      throw CommandError(
        error.isNotFound ? .notFound : .failed, "cannot read \(what)", why: "\(path): \(error.reason)",
        try: "check the path", of: error)
    }
    let descriptor = file.raw
    guard (try? system.status(of: descriptor))?.kind == .file else {
      throw .usage("cannot read \(what)", why: "\(path) is not a regular file", try: "a file")
    }
    let bytes = try drain(descriptor, name: path, atMost: limit, what: what)
    try? file.close(system)
    return bytes
  }

  /// Returns the first bytes of a regular file. Returns no bytes for anything else, because reading a pipe could wait
  /// forever.
  static func start(of path: String, byteCount: Int) -> [UInt8] {
    let system = FileSystem.real
    guard let status = try? system.status(of: path, followsLink: true), status.kind == .file,
      let file = try? system.openForReading(path)
    else { return [] }
    var start: [UInt8] = []
    while start.count < byteCount {
      var buffer = [UInt8](repeating: 0, count: byteCount - start.count)
      do throws(Errno) {
        let count = try fill(&buffer, from: file.raw)
        if count == 0 { break }
        start += buffer.prefix(count)
      } catch {
        // Tries again after a signal, unless the signal asked the program to stop.
        guard error == .interrupted, Interruption.pending == nil else { break }
      }
    }
    try? file.close(system)
    return start
  }

  private static func drain(
    _ descriptor: FileDescriptor, name: String, atMost limit: Int, what: String
  ) throws(CommandError) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      try DescriptorInput.waitForInput(descriptor.rawValue)
      let received: Int
      do throws(Errno) {
        received = try fill(&buffer, from: descriptor)
      } catch {
        if error == .interrupted {
          try Interruption.check()
          continue
        }
        throw CommandError(
          .failed, "cannot read \(what)", why: "\(name): \(error.reason)", try: "check the disk", of: error)
      }
      if received == 0 { return bytes }
      guard bytes.count + received <= limit else {
        throw CommandError(
          .refused, "refused to read \(what)", why: "\(name) is longer than \(HumanReadable.bytes(limit))",
          try: "the right file")
      }
      bytes += buffer[..<received]
    }
  }

  private static func fill(_ buffer: inout [UInt8], from descriptor: FileDescriptor) throws(Errno) -> Int {
    try buffer.withUnsafeMutableBytes { buffer in
      Result { () throws(Errno) in try DescriptorInput.readOnce(descriptor.rawValue, into: buffer) }
    }.get()
  }
}
