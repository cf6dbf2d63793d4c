/// The name of a virtual device, which is also the name of its directory.
///
/// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`: nothing in it can leave the directory of devices, hide, or look like a flag.
public struct DeviceName: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The most characters a name may have.
  public static let longest = 64

  /// The name as it was given.
  public let text: String

  /// Creates a name of a text that has its form.
  ///
  /// - Throws: `.badName`.
  public init(_ text: String) throws(VirtualDeviceError) {
    guard Self.isValid(text) else {
      throw VirtualDeviceError(.badName, text, "a name is a letter or digit, then letters, digits and . _ -")
    }
    self.text = text
  }

  /// Whether a text can be the name of a device.
  package static func isValid(_ text: String) -> Bool {
    let bytes = text.utf8
    guard let first = bytes.first, bytes.count <= longest, isAlphanumeric(first) else { return false }
    return bytes.allSatisfy { byte in isAlphanumeric(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F }
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: false
    }
  }

  public var description: String { text }
  public static func < (left: Self, right: Self) -> Bool { left.text < right.text }
}
