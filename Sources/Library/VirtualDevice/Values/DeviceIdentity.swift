public import Basics
import KeychainCrypto
import KeychainFormats

/// The model and version of a new device.
public struct DeviceIdentity: Sendable, Equatable {
  /// The default model.
  public static let standardProductType = "iPhone15,2"

  /// The model, such as `iPhone15,2`.
  package var productType: String
  /// The iOS version, which determines formats and default protection classes.
  package var productVersion: ProductVersion
  /// The iOS build; `nil` if Apple's build for the version is not known.
  public var build: String?

  /// Creates an identity. The default is an iPhone15,2 with iOS 18.1.
  ///
  /// - Parameters:
  ///   - productType: The model, such as `iPhone15,2`.
  ///   - productVersion: The iOS version. `ProductVersion.standard`, 18.1, is the only one that the library offers.
  ///   - build: The iOS build, or `nil` to use Apple's build of the version, if Keyhaul knows it.
  public init(
    productType: String = Self.standardProductType, productVersion: ProductVersion = .standard, build: String? = nil
  ) {
    self.productType = productType
    self.productVersion = productVersion
    self.build = build ?? Self.knownBuilds[productVersion.text]
  }

  /// Builds of iPhone releases. Source: Apple's release listings.
  private static let knownBuilds = [
    "18.1": "22B83", "18.0": "22A3354", "17.0": "21A329", "16.0": "20A362", "15.0": "19A346", "14.0": "18A373",
    "13.0": "17A577", "12.0": "16A366", "11.0": "15A372", "10.2": "14C92",
  ]

  /// Returns whether a text has the format of a device identifier: 8 upper-case hexadecimal digits, a hyphen and 16
  /// more digits.
  static func isUDID(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    return parts.map(\.count) == [8, 16]
      && parts.joined().allSatisfy { byte in
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte)
      }
  }

  static func randomUDID(_ random: any RandomSource) throws(DataProtectionError) -> String {
    let digits = String(hexadecimal: try random.bytes(12)).uppercased()
    return "\(digits.prefix(8))-\(digits.dropFirst(8))"
  }

  /// Returns a random serial number: ten characters, as on devices since 2021, without characters that are easily
  /// confused.
  static func randomSerialNumber(
    _ random: any RandomSource
  ) throws(DataProtectionError) -> String {
    let alphabet = Array("0123456789ABCDEFGHJKLMNPQRTVWXYZ")
    // The lowest five bits of a byte select one of the 32 characters.
    return String(try random.bytes(10).map { alphabet[Int($0 & 0x1F)] })
  }
}

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
