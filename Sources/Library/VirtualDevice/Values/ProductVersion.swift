package import Basics
package import KeychainFormats

/// A version of iOS, such as 18.1 or 4.3.5, and what of this toolkit depends on it.
public struct ProductVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The most numbers a version may have.
  package static let maximumPartCount = 4
  /// The most digits one number may have.
  package static let maximumDigitCount = 4

  /// The version as it was given; `18.1` and `18.1.0` are equal and keep their texts.
  package let text: String
  private let parts: [Int]

  /// Creates a version of a text such as `18.1`.
  ///
  /// - Throws: `.badVersion` where the text is not one to four numbers with dots between them.
  package init(_ text: String) throws(KeyhaulError) {
    let pieces = text.split(separator: ".", omittingEmptySubsequences: false)
    var parts: [Int] = []
    for piece in pieces {
      let isNumber = !piece.isEmpty && piece.utf8.allSatisfy { (0x30...0x39).contains($0) }
      guard isNumber, piece.utf8.count <= Self.maximumDigitCount, let number = Int(piece) else {
        throw KeyhaulError(
          .badVersion, text, "its parts are not numbers of at most \(Self.maximumDigitCount) digits")
      }
      parts.append(number)
    }
    guard parts.count <= Self.maximumPartCount else {
      throw KeyhaulError(
        .badVersion, text, "it has \(parts.count) parts; at most \(Self.maximumPartCount) are known")
    }
    self.text = text
    while parts.count > 1, parts.last == 0 { parts.removeLast() }
    self.parts = parts
  }

  private init(text: String, parts: [Int]) {
    self.text = text
    self.parts = parts
  }

  /// The version of a device for which none is named, 18.1.
  public static let standard = ProductVersion(text: "18.1", parts: [18, 1])
  private static let firstWithDefaultClass = ProductVersion(text: "5", parts: [5])
  private static let firstWithManifestDatabase = ProductVersion(text: "10.2", parts: [10, 2])

  /// The protection class of an item that was added without one.
  ///
  /// Since iOS 5 that is "when unlocked"; iOS 4 left such items readable at all times.
  /// Source: Apple, `kSecAttrAccessible` in the Keychain Services reference.
  package var defaultProtection: ProtectionClass { self < Self.firstWithDefaultClass ? .always : .whenUnlocked }

  /// Whether a device of this version can be backed up: the layout with Manifest.db came with iOS 10.2.
  package var canWriteBackups: Bool { self >= Self.firstWithManifestDatabase }

  public var description: String { text }

  public static func == (left: Self, right: Self) -> Bool { left.parts == right.parts }
  public func hash(into hasher: inout Hasher) { hasher.combine(parts) }
  public static func < (left: Self, right: Self) -> Bool { left.parts.lexicographicallyPrecedes(right.parts) }
}

extension JSONCursor {
  func productVersion() throws(Fault) -> ProductVersion {
    let text = try string()
    do throws(KeyhaulError) { return try ProductVersion(text) } catch { throw fault(error.reason) }
  }
}
