import Basics

/// Lines of text, without their line ends.
struct TextLines {
  /// The bytes after the lines that were returned.
  private(set) var remaining: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { remaining = bytes.dropFirst(UTF8Scalars.byteOrderMarkCount(of: bytes)) }

  /// Returns the next line; `nil` at the end.
  mutating func next() -> ArraySlice<UInt8>? {
    guard !remaining.isEmpty else { return nil }
    let end = remaining.firstIndex(of: UInt8(ascii: "\n"))
    var line = remaining[..<(end ?? remaining.endIndex)]
    remaining = remaining[(end.map { $0 + 1 } ?? remaining.endIndex)...]
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    return line
  }

  /// Returns the next line without moving on.
  func peek() -> ArraySlice<UInt8>? {
    var copy = self
    return copy.next()
  }
}
