import KeyhaulKit
import SystemPackage

/// The lines of a file, each with its offset.
struct ResumeLogLines {
  private let file: FileDescriptor
  private let name: String
  private let maximumByteCount: Int
  private var buffered: [UInt8] = []
  /// The number of bytes at the start of `buffered` that belong to returned lines. They are removed only before more bytes
  /// are read.
  private var usedCount = 0
  /// The offset of the next line in the file.
  private var offset: Int64 = 0
  private var isAtEnd = false
  /// Whether the last line has no line end.
  private(set) var endsWithinLine = false

  init(_ file: FileDescriptor, named name: String, maximumByteCount: Int) {
    self.file = file
    self.name = name
    self.maximumByteCount = maximumByteCount
  }

  /// Returns the next line, without its line end; `nil` after the last line.
  mutating func next() throws(CommandError) -> (offset: Int64, bytes: [UInt8])? {
    // There is no line end between `usedCount` and this index.
    var searchStart = usedCount
    while true {
      if let end = buffered[searchStart...].firstIndex(of: UInt8(ascii: "\n")) {
        let line = (offset, Array(buffered[usedCount..<end]))
        offset += Int64(end + 1 - usedCount)
        usedCount = end + 1
        return line
      }
      buffered.removeFirst(usedCount)
      usedCount = 0
      searchStart = buffered.count
      if isAtEnd {
        guard !buffered.isEmpty else { return nil }
        endsWithinLine = true
        defer { buffered = [] }
        return (offset, buffered)
      }
      guard buffered.count <= maximumByteCount else {
        throw CommandError(
          .refused, "refused to read \(name)",
          why: "it has a line of more than \(HumanReadable.bytes(maximumByteCount))",
          try: "another file after --resume")
      }
      try fill()
    }
  }

  /// Reads more bytes.
  private mutating func fill() throws(CommandError) {
    try Interruption.check()
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let location = offset + Int64(buffered.count)
    do throws(Errno) {
      let count = try buffer.withUnsafeMutableBytes { buffer in
        Result { () throws(Errno) in try FileSystem.real.read(file, at: location, into: buffer) }
      }.get()
      buffered += buffer[..<count]
      isAtEnd = count == 0
    } catch {
      throw CommandError(.failed, "cannot read \(name)", why: error.reason, try: "check the disk", of: error)
    }
  }
}
