package import Basics
package import KeychainFormats

/// An iOS version such as 18.1 or 4.3.5, and the behavior that depends on it.
public struct ProductVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The largest number of parts in a version.
  package static let maximumPartCount = 4
  /// The largest number of digits in a part.
  package static let maximumDigitCount = 4

  /// The version as given. `18.1` and `18.1.0` are equal but have different texts.
  package let text: String
  private let parts: [Int]

  /// Creates a version from a text such as `18.1`.
  ///
  /// - Throws: `.badVersion` if the text does not consist of one to four numbers with dots between them.
  package init(_ text: String) throws(KeyhaulError) {
    let pieces = text.split(separator: ".", omittingEmptySubsequences: false)
    var parts: [Int] = []
    for piece in pieces {
      let isNumber = !piece.isEmpty && piece.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
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

  /// The default version of a device, 18.1.
  public static let standard = ProductVersion(text: "18.1", parts: [18, 1])
  private static let firstWithDefaultClass = ProductVersion(text: "5", parts: [5])
  private static let firstWithBackups = ProductVersion(text: "10.2", parts: [10, 2])

  /// The protection class of an item that was added without a class.
  ///
  /// Since iOS 5 it is "when unlocked". In iOS 4, such items were always accessible.
  ///
  /// Source: Apple, `kSecAttrAccessible` in the Keychain Services reference.
  package var defaultProtection: ProtectionClass { self < Self.firstWithDefaultClass ? .always : .whenUnlocked }

  /// Apple's build of the version for iPhones, or `nil` if it is not in the table.
  var knownBuild: String? { Self.builds[text] }

  /// Builds of iPhone releases. Source: Apple's release listings.
  private static let builds = [
    "18.1": "22B83", "18.0": "22A3354", "17.0": "21A329", "16.0": "20A362", "15.0": "19A346", "14.0": "18A373",
    "13.0": "17A577", "12.0": "16A366", "11.0": "15A372", "10.2": "14C92",
  ]

  /// Whether a device with this version can be backed up. Keyhaul writes the backup format of iOS 10.2 and later.
  package var canWriteBackups: Bool { self >= Self.firstWithBackups }

  /// The version as given.
  public var description: String { text }

  /// Returns whether both versions have the same parts: `18.1` and `18.1.0` are equal.
  public static func == (left: Self, right: Self) -> Bool { left.parts == right.parts }
  public func hash(into hasher: inout Hasher) { hasher.combine(parts) }
  /// Returns whether the first version is older than the second one.
  public static func < (left: Self, right: Self) -> Bool { left.parts.lexicographicallyPrecedes(right.parts) }
}

extension JSONCursor {
  func productVersion() throws(Fault) -> ProductVersion {
    let text = try string()
    do throws(KeyhaulError) { return try ProductVersion(text) } catch { throw fault(error.reason) }
  }
}
