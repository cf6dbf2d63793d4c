import Basics
import KeychainCrypto
import KeychainFormats

/// One part of a path out of a backup as a name that every file system takes: what none takes is spelled `%2F`.
///
/// A percent sign of its own stays as it is, because many names have one; two names that become one are kept apart by
/// `TreeNames`.
enum SafeName {
  /// UTF-8 bytes of a name (`NAME_MAX`).
  static let maximumByteCount = 255
  /// How many digits of a hash keep names apart.
  private static let digitCount = 8

  /// The name itself where nothing is wrong with it.
  static func name(of part: some StringProtocol) throws(KeyhaulError) -> String {
    try name(of: Array(part.utf8))
  }

  /// The same of bytes, which need not be UTF-8.
  static func name(of part: some Collection<UInt8>) throws(KeyhaulError) -> String {
    let text = DecodedName(part).text
    switch text {
    // A slash with nothing before it.
    case "": return "%2F"
    case ".": return "%2E"
    case "..": return "%2E%2E"
    default: break
    }
    let isPlain = text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }
    let name = isPlain ? text : escaped(text)
    return name.utf8.count <= maximumByteCount ? name : try distinguished(name, by: Array(part))
  }

  /// The name with digits behind it that follow from `original`, shortened where it is too long.
  ///
  /// - Parameter count: How many digits.
  static func distinguished(
    _ name: String, by original: [UInt8], digits count: Int = digitCount
  ) throws(KeyhaulError) -> String {
    let digest = try explained("a name") { () throws(DataProtectionError) in try Digest.sha1(original) }
    var kept = ""
    for character in name {
      guard kept.utf8.count + character.utf8.count + count + 1 <= maximumByteCount else { break }
      kept.append(character)
    }
    return "\(kept)~\(String(hexadecimal: digest).prefix(count))"
  }

  /// The form in which two names are one on a file system that knows no case and no form of Unicode.
  ///
  /// Texts of Swift are equal in all their canonical forms; capitals come first, so that ß is SS here as there.
  static func folded(_ name: String) -> String { name.uppercased().lowercased() }

  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      if isUnsafe(scalar) {
        for byte in String(scalar).utf8 { result += "%" + hexadecimal(byte) }
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// What ends or cuts a name, what a terminal acts on, and what turns the text behind it around.
  private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x2F, 0x2028...0x202E, 0x2066...0x2069: true
    default: scalar.properties.generalCategory == .control
    }
  }

  private static func hexadecimal(_ byte: UInt8) -> String { String(hexadecimal: [byte]).uppercased() }
}

/// Which symbolic links of a backup may be written: those that stay in the folder, whatever other links stand there.
///
/// A link that begins with `..` goes up through directories that are none but directories. Behind that it only goes down,
/// by names of which each is a directory, a file or another such link. `..` behind a name could go up from wherever a
/// link of that name leads, so that no such target is written.
enum LinkRule {
  /// Bytes of a target (`PATH_MAX`).
  private static let maximumByteCount = 1_023

  /// - Parameter depth: How many directories the link lies below the folder, its domain counted.
  static func staysInside(_ target: String, depth: Int) -> Bool {
    guard !target.isEmpty, target.utf8.count <= maximumByteCount, !target.utf8.contains(0) else { return false }
    let parts = target.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.first != "" else { return false }
    let climbing = parts.prefix { $0 == ".." || $0 == "." }
    return climbing.count { $0 == ".." } <= depth && !parts.dropFirst(climbing.count).contains("..")
  }
}
