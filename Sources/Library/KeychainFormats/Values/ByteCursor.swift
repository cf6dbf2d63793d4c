import Basics

/// Reads bytes in order, never past their end.
///
/// Offsets are relative to the start of the bytes. The bytes must outlive the cursor.
struct ByteCursor {
  let bytes: UnsafeRawBufferPointer
  let format: FormatError.Format
  private(set) var offset: Int
  let end: Int

  init(_ bytes: UnsafeRawBufferPointer, format: FormatError.Format) {
    self.bytes = bytes
    self.format = format
    offset = 0
    end = bytes.count
  }

  private init(_ bytes: UnsafeRawBufferPointer, format: FormatError.Format, range: Range<Int>) {
    self.bytes = bytes
    self.format = format
    offset = range.lowerBound
    end = range.upperBound
  }

  var remaining: Int { end - offset }
  var isAtEnd: Bool { offset == end }
  /// All remaining bytes, not copied.
  var remainingBytes: UnsafeRawBufferPointer { bytes(in: offset..<end) }

  /// Skips `count` bytes and returns their range.
  ///
  /// - Parameters:
  ///   - count: The number of bytes.
  ///   - what: The name of the bytes, for the error if they are missing.
  /// - Throws: `.truncated` if fewer bytes remain.
  mutating func take(_ count: Int, _ what: @autoclosure () -> String) throws(FormatError) -> Range<Int> {
    guard count >= 0, count <= remaining else { throw truncated(count, what()) }
    defer { offset += count }
    return offset..<(offset + count)
  }

  private func truncated(_ count: Int, _ what: String) -> FormatError {
    FormatError(format, .truncated, "\(what) of \(count) bytes does not fit", offset: offset)
  }

  /// Skips `count` bytes and returns a cursor limited to them.
  mutating func takeCursor(_ count: Int, _ what: @autoclosure () -> String) throws(FormatError) -> ByteCursor {
    ByteCursor(bytes, format: format, range: try take(count, what()))
  }

  mutating func takeBytes(_ count: Int, _ what: @autoclosure () -> String) throws(FormatError) -> [UInt8] {
    copy(try take(count, what()))
  }

  mutating func takeByte(_ what: @autoclosure () -> String) throws(FormatError) -> UInt8 {
    guard offset < end else { throw truncated(1, what()) }
    defer { offset += 1 }
    return bytes[offset]
  }

  mutating func takeLittleEndianWord(_ what: @autoclosure () -> String) throws(FormatError) -> UInt32 {
    let range = try take(4, what())
    return range.reversed().reduce(0) { $0 << 8 | UInt32(bytes[$1]) }
  }

  mutating func takeBigEndianWord(_ what: @autoclosure () -> String) throws(FormatError) -> UInt32 {
    let range = try take(4, what())
    return range.reduce(0) { $0 << 8 | UInt32(bytes[$1]) }
  }

  /// Returns a copy of the bytes in a range from `take`.
  func copy(_ range: Range<Int>) -> [UInt8] { Array(bytes(in: range)) }

  /// Returns the bytes in a range from `take`, not copied.
  func bytes(in range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[range]) }
}

extension [UInt8] {
  package mutating func append(littleEndian word: UInt32) {
    append(contentsOf: (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) })
  }

  /// The value of a big-endian word, or `nil` unless there are four bytes.
  var bigEndianWord: UInt32? { count == 4 ? reduce(0) { $0 << 8 | UInt32($1) } : nil }
}
