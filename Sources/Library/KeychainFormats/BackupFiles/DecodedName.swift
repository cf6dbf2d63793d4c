import Basics

/// A name or path from a backup's manifest, decoded into text.
package struct DecodedName: Sendable, Hashable {
  /// The name. In a part of a path that is not UTF-8, each invalid byte is written as `%F5`, and `%` itself as `%25`.
  package let text: String
  /// The name's bytes if they are not UTF-8, otherwise `nil`.
  package let undecodedBytes: [UInt8]?

  /// Decodes UTF-8. The parts of a path are decoded separately, so a part has the same text alone and in a path.
  package init(_ bytes: some Collection<UInt8>) {
    // `String(utf8:)` is faster, but requires contiguous bytes.
    let contiguousText = bytes.withContiguousStorageIfAvailable { String(utf8: UnsafeRawBufferPointer($0)) }
    if let text = contiguousText ?? String(validating: bytes, as: UTF8.self) {
      self.text = text
      undecodedBytes = nil
      return
    }
    let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    text = parts.map { String(validating: $0, as: UTF8.self) ?? Self.escaped(Array($0)) }.joined(separator: "/")
    undecodedBytes = Array(bytes)
  }

  /// Decodes UTF-16. An unpaired surrogate counts as three invalid bytes: those that UTF-8 would have for it.
  package init(utf16 units: [UInt16]) {
    var bytes: [UInt8] = []
    var parser = Unicode.UTF16.ForwardParser()
    var (iterator, offset) = (units.makeIterator(), 0)
    loop: while true {
      switch parser.parseScalar(from: &iterator) {
      case .valid(let scalar):
        bytes += String(Unicode.UTF16.decode(scalar)).utf8
        offset += scalar.count
      case .error(let count):
        for surrogate in units[offset..<(offset + count)] { bytes += Self.utf8Bytes(of: surrogate) }
        offset += count
      case .emptyInput: break loop
      }
    }
    self.init(bytes)
  }

  /// Returns whether bytes are UTF-8, without creating a text if they are ASCII.
  package static func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.allSatisfy { $0 < 0x80 } || String(validating: bytes, as: UTF8.self) != nil
  }

  /// Returns the three bytes that UTF-8 would have for a surrogate.
  private static func utf8Bytes(of surrogate: UInt16) -> [UInt8] {
    [0xE0 | UInt8(surrogate >> 12), 0x80 | UInt8(surrogate >> 6 & 0x3F), 0x80 | UInt8(surrogate & 0x3F)]
  }

  /// Returns the text of bytes, with escapes for invalid bytes and `%`.
  private static func escaped(_ bytes: [UInt8]) -> String {
    var result = ""
    var parser = Unicode.UTF8.ForwardParser()
    var (iterator, offset) = (bytes.makeIterator(), 0)
    while true {
      switch parser.parseScalar(from: &iterator) {
      case .valid(let encoded):
        let scalar = Unicode.UTF8.decode(encoded)
        if scalar == "%" { result += "%25" } else { result.unicodeScalars.append(scalar) }
        offset += encoded.count
      case .error(let count):
        for byte in bytes[offset..<(offset + count)] {
          result += "%" + String(hexadecimal: [byte]).uppercased()
        }
        offset += count
      case .emptyInput: return result
      }
    }
  }
}
