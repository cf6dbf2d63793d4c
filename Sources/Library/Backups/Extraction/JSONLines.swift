package import Basics
import KeychainFormats
import SystemPackage

/// A file with one JSON document on each line.
enum JSONLines {
  /// Bytes of a line; ours have some hundreds.
  private static let maximumLineByteCount = 1 << 20
  private static let portionByteCount = 64 << 10

  /// Lends each line that is a document, until `body` answers `false`. What is none, such as a last line that was cut off,
  /// is passed over.
  static func forEach(
    in file: borrowing OwnedFileDescriptor, _ system: FileSystem, _ body: (JSONValue) throws(Errno) -> Bool
  ) throws(Errno) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: portionByteCount, alignment: 16)
    defer { buffer.deallocate() }
    var rest: [UInt8] = []
    let raw = file.raw
    while true {
      let count = try system.read(raw, into: buffer)
      if count == 0 { return }
      var start = 0
      while let end = buffer[start..<count].firstIndex(of: UInt8(ascii: "\n")) {
        rest.append(contentsOf: buffer[start..<end])
        if let line = try? JSONValue(parsing: rest), try !body(line) { return }
        rest.removeAll(keepingCapacity: true)
        start = end + 1
      }
      rest.append(contentsOf: buffer[start..<count])
      // No line of ours: what is kept of it is not a document.
      if rest.count > maximumLineByteCount { rest = [0] }
    }
  }
}

extension ExtractedFiles {
  /// Lends each line of a finished manifest but the first, which says of what backup the files are.
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
