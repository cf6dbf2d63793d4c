import Basics
import KeychainCrypto
import KeychainFormats

/// A path component from a backup as a file name that is valid on every file system. Invalid characters are
/// percent-encoded, such as `%2F`.
///
/// Percent signs stay unchanged, because many names contain them. `ExtractionPaths` resolves collisions.
enum SafeName {
  /// The maximum size of a name in UTF-8 bytes (`NAME_MAX`).
  static let maximumByteCount = 255
  /// The number of hash digits that distinguish names.
  private static let digitCount = 8

  /// Returns the safe name of a component, unchanged if it is valid.
  static func name(of component: some StringProtocol) throws(KeyhaulError) -> String {
    try name(of: Array(component.utf8))
  }

  /// Returns the safe name of a component that may not be UTF-8.
  static func name(of component: some Collection<UInt8>) throws(KeyhaulError) -> String {
    let text = DecodedName(component).text
    switch text {
    // Two adjacent slashes have an empty component between them.
    case "": return "%2F"
    case ".": return "%2E"
    case "..": return "%2E%2E"
    default: break
    }
    let isPrintableASCII = text.utf8.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "/") }
    let name = isPrintableASCII ? text : escaped(text)
    return name.utf8.count <= maximumByteCount ? name : try distinguished(name, by: Array(component))
  }

  /// Returns the name with hash digits of `original` appended, shortened if necessary.
  ///
  /// - Parameter count: The number of digits.
  static func distinguished(
    _ name: String, by original: [UInt8], digits count: Int = digitCount
  ) throws(KeyhaulError) -> String {
    let digest = try translatingErrors(in: "a name") { () throws(DataProtectionError) in try Digest.sha1(original) }
    var shortened = ""
    for character in name {
      guard shortened.utf8.count + character.utf8.count + count + 1 <= maximumByteCount else { break }
      shortened.append(character)
    }
    return "\(shortened)~\(String(hexadecimal: digest).prefix(count))"
  }

  /// Returns a form of a name for comparison. Two forms are equal if a file system that ignores case and Unicode
  /// normalization does not distinguish the names.
  ///
  /// Swift compares canonical forms. Upper-casing first maps ß to SS, as these file systems do.
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

  /// Returns whether a character ends a name, controls a terminal, or changes the text direction.
  private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "/": true
    // Line and paragraph separators, and bidirectional embeddings and overrides.
    case "\u{2028}"..."\u{202E}": true
    // Bidirectional isolates.
    case "\u{2066}"..."\u{2069}": true
    default: scalar.properties.generalCategory == .control
    }
  }

  private static func hexadecimal(_ byte: UInt8) -> String { String(hexadecimal: [byte]).uppercased() }
}

/// A check for symbolic links whose target stays in the folder, independent of other links in it.
///
/// A target with leading `..` components moves up through real directories, then only down through directories, files,
/// and similar links. A `..` after a name could move up from any link target, so such targets are refused.
enum SymlinkPolicy {
  /// The maximum size of a target in bytes (`PATH_MAX` without the final NUL).
  private static let maximumByteCount = 1_023

  /// Returns whether a target stays inside the folder.
  ///
  /// - Parameter depth: The number of directories between the folder and the link, including the domain.
  static func staysInside(_ target: String, depth: Int) -> Bool {
    guard !target.isEmpty, target.utf8.count <= maximumByteCount, !target.utf8.contains(0) else { return false }
    // The components are compared as bytes, as the system does. A combining mark after a slash or a dot, or a letter such
    // as U+0D4E before a slash, would otherwise hide it in a `Character`.
    let components = target.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    let isAbsolute = components.first?.isEmpty == true
    guard !isAbsolute else { return false }
    func isParent(_ component: Substring.UTF8View) -> Bool { component.elementsEqual("..".utf8) }
    let leadingDots = components.prefix { isParent($0) || $0.elementsEqual(".".utf8) }
    return leadingDots.count(where: isParent) <= depth
      && !components.dropFirst(leadingDots.count).contains(where: isParent)
  }
}
