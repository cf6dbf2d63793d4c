package import Basics
package import KeychainFormats

/// A JSON file with the class keys of a device.
///
/// The file is one object that maps each class to 64 hexadecimal digits: `{"6": "00ff…", "ck": "…"}`. A class is named
/// by its number, 6 to 12, or by its code, such as `ak` or `akpu`, and may occur only once. The format is Keyhaul's own,
/// because no other tool documents a format.
package enum ClassKeyFile {
  /// The largest accepted size of the file, in bytes.
  package static let maximumByteCount = 65_536
  /// The size of a key, in bytes.
  package static let keyByteCount = 32

  /// Reads the keys. They are stored only in memory that is overwritten when it is released.
  ///
  /// - Throws: `.malformed`, with the offset in bytes, if the file does not have this format; `.databaseOverLimit` if
  ///   it is too large. The error quotes no digit of a key.
  package static func keys(in file: SensitiveBytes) throws(KeyhaulError) -> [KeyClass: SensitiveBytes] {
    try file.withBytes { (bytes) throws(KeyhaulError) in
      guard bytes.count <= maximumByteCount else {
        throw KeyhaulError(
          .databaseOverLimit,
          "it has \(HumanReadable.bytes(bytes.count)); Keyhaul reads at most \(HumanReadable.grouped(maximumByteCount))"
        )
      }
      var scanner = KeyScanner(bytes: bytes)
      return try scanner.object()
    }
  }
}

/// A parser for the subset of JSON (RFC 8259) that a class key file uses.
private struct KeyScanner {
  let bytes: UnsafeRawBufferPointer
  var offset = 0

  mutating func object() throws(KeyhaulError) -> [KeyClass: SensitiveBytes] {
    var keys: [KeyClass: SensitiveBytes] = [:]
    offset = UTF8Scalars.byteOrderMarkCount(of: bytes)
    try expect("{", "it is not a JSON object")
    skipSpace()
    if offset < bytes.count, bytes[offset] == UInt8(ascii: "}") { throw fault("it has no key", at: offset) }
    repeat {
      let start = offset
      let name = try string()
      // All names of classes are shorter than 16 bytes, so a longer name need not be copied completely.
      guard let keyClass = Self.keyClass(named: String(decoding: bytes[name].prefix(16), as: UTF8.self)) else {
        throw fault("a name is neither a class number (6 to 12) nor a class code (ak to akpu)", at: start)
      }
      try expect(":", "a name has no value")
      let digits = try string()
      guard digits.count == 2 * ClassKeyFile.keyByteCount else {
        throw fault(
          "the key of class \(keyClass.rawValue) has \(digits.count) digits instead of \(2 * ClassKeyFile.keyByteCount)",
          at: digits.lowerBound)
      }
      guard keys[keyClass] == nil else { throw fault("class \(keyClass.rawValue) occurs twice", at: start) }
      keys[keyClass] = try key(digits)
    } while try hasNextMember()
    skipSpace()
    guard offset == bytes.count else { throw fault("there is text after the object", at: offset) }
    return keys
  }

  private func key(_ digits: Range<Int>) throws(KeyhaulError) -> SensitiveBytes {
    let digitBytes = bytes[digits]
    guard digitBytes.allSatisfy({ HexadecimalDigits.value(of: $0) != nil }) else {
      throw fault("a class key contains a character that is not a hexadecimal digit", at: digits.lowerBound)
    }
    return SensitiveBytes(count: digits.count / 2) { target in
      for index in target.indices {
        let high = HexadecimalDigits.value(of: digitBytes[digits.lowerBound + 2 * index]) ?? 0
        let low = HexadecimalDigits.value(of: digitBytes[digits.lowerBound + 2 * index + 1]) ?? 0
        target[index] = high << 4 | low
      }
    }
  }

  private static func keyClass(named name: String) -> KeyClass? {
    if let protection = ProtectionClass(rawValue: name) { return protection.keyClass }
    return ProtectionClass.allCases.map(\.keyClass).first { String($0.rawValue) == name }
  }

  /// Parses a string without escape sequences, which no class name or key needs.
  ///
  /// - Returns: The offsets between the quotation marks.
  private mutating func string() throws(KeyhaulError) -> Range<Int> {
    try expect("\"", "a quoted string is missing")
    let start = offset
    while offset < bytes.count, bytes[offset] != UInt8(ascii: "\"") {
      guard bytes[offset] >= 0x20, bytes[offset] != UInt8(ascii: "\\") else {
        throw fault("a string contains an escape sequence", at: offset)
      }
      offset += 1
    }
    let end = offset
    try expect("\"", "a string does not end")
    return start..<end
  }

  private mutating func hasNextMember() throws(KeyhaulError) -> Bool {
    skipSpace()
    if offset < bytes.count, bytes[offset] == UInt8(ascii: ",") {
      offset += 1
      return true
    }
    try expect("}", "the object does not end")
    return false
  }

  private mutating func expect(_ character: Unicode.Scalar, _ reason: String) throws(KeyhaulError) {
    skipSpace()
    guard offset < bytes.count, UInt32(bytes[offset]) == character.value else { throw fault(reason, at: offset) }
    offset += 1
  }

  private mutating func skipSpace() {
    while offset < bytes.count, " \t\n\r".utf8.contains(bytes[offset]) { offset += 1 }
  }

  private func fault(_ reason: String, at offset: Int) -> KeyhaulError {
    KeyhaulError(.malformed, "\(reason), at byte \(offset)")
  }
}
