import Basics
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
    self.build = build ?? productVersion.knownBuild
  }

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
