import Basics
import KeychainCrypto
import KeychainFormats

/// Who a new device shall be.
public struct DeviceIdentity: Sendable, Equatable {
  /// The model of a device for which none is named.
  public static let standardProductType = "iPhone15,2"

  /// The model, such as `iPhone15,2`.
  public var productType: String
  /// The version of iOS, which decides about formats and default classes.
  public var productVersion: ProductVersion
  /// The build of iOS; where it is `nil`, the one Apple published for the version, if it is among those known here.
  public var build: String?

  /// Creates an identity; the standard one is an iPhone15,2 with iOS 18.1.
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

  /// Whether a text has the form of an identifier: 8 upper-case hexadecimal digits, a hyphen, 16 more.
  static func isUDID(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard bytes.count == 25, bytes[8] == 0x2D else { return false }
    return bytes.enumerated().allSatisfy { index, byte in
      index == 8 || (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte)
    }
  }

  static func randomUDID(_ random: any RandomSource) throws(DataProtectionError) -> String {
    let digits = String(hexadecimal: try random.bytes(12)).uppercased()
    return "\(digits.prefix(8))-\(digits.dropFirst(8))"
  }

  /// Ten characters, as on devices since 2021; without those that are easily mistaken for another.
  static func randomSerialNumber(
    _ random: any RandomSource
  ) throws(DataProtectionError) -> String {
    let alphabet = Array("0123456789ABCDEFGHJKLMNPQRTVWXYZ")
    return String(try random.bytes(10).map { alphabet[Int($0 & 31)] })
  }
}
