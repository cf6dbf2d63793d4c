package import Basics
import KeychainFormats
import SystemPackage

/// A file with a JSON document in each line.
enum JSONLines {
  /// The maximum size of a line in bytes. Valid lines have some hundred bytes.
  private static let maximumLineByteCount = 1 << 20
  private static let chunkByteCount = 64 << 10

  /// Passes each line with a valid document to a closure until it returns `false`. Other lines, such as an incomplete
  /// last one, are skipped.
  static func forEach(
    in file: borrowing OwnedFileDescriptor, _ system: FileSystem, _ body: (JSONValue) throws(Errno) -> Bool
  ) throws(Errno) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: chunkByteCount, alignment: 16)
    defer { buffer.deallocate() }
    var lineBytes: [UInt8] = []
    let raw = file.raw
    while true {
      let count = try system.read(raw, into: buffer)
      if count == 0 { return }
      var start = 0
      while let end = buffer[start..<count].firstIndex(of: UInt8(ascii: "\n")) {
        lineBytes.append(contentsOf: buffer[start..<end])
        if let line = try? JSONValue(parsing: lineBytes), try !body(line) { return }
        lineBytes.removeAll(keepingCapacity: true)
        start = end + 1
      }
      lineBytes.append(contentsOf: buffer[start..<count])
      // A line that is too long is replaced with an invalid document, which is skipped when the line ends.
      if lineBytes.count > maximumLineByteCount { lineBytes = [0] }
    }
  }
}

extension ExtractedFiles {
  /// Passes the lines of a finished manifest to a closure, without the header.
  package static func forEachLine(
    ofManifest path: String, _ body: (JSONValue) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let system = FileSystem.real
    var failure: KeyhaulError?
    var isFirst = true
    do throws(Errno) {
      let file = try system.openForReading(path)
      try JSONLines.forEach(in: file, system) { line in
        defer { isFirst = false }
        do throws(KeyhaulError) {
          if !isFirst { try body(line) }
          return true
        } catch {
          failure = error
          return false
        }
      }
    } catch {
      throw KeyhaulError(.unreadable, "\(UntrustedText.quoted(path)): \(error.reason)", errno: error)
    }
    if let failure { throw failure }
  }
}
