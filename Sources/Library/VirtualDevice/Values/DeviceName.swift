public import Basics

/// The name of a virtual device, which is also the name of its folder.
///
/// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`: a name cannot leave the folder of devices, be hidden, or look like a flag.
public struct DeviceName: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The maximum length of a name in bytes. Each character is one byte.
  package static let maximumByteCount = 64

  /// The name as text.
  package let text: String

  /// Creates a name from a text.
  ///
  /// - Throws: `.badName` if the text is not a valid name.
  public init(_ text: String) throws(KeyhaulError) {
    guard Self.isValid(text) else {
      throw KeyhaulError(.badName, text, "names use letters, digits and . _ -, and start with a letter or digit")
    }
    self.text = text
  }

  /// Returns whether a text can be the name of a device.
  package static func isValid(_ text: String) -> Bool {
    let bytes = text.utf8
    guard let first = bytes.first, bytes.count <= maximumByteCount, isAlphanumeric(first) else { return false }
    return bytes.allSatisfy { byte in isAlphanumeric(byte) || "-._".utf8.contains(byte) }
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: false
    }
  }

  public var description: String { text }
  public static func < (left: Self, right: Self) -> Bool { left.text < right.text }
}
