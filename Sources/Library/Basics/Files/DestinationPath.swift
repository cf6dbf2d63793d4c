/// A path split into a directory and the name of an entry in it, with temporary names next to that entry.
package struct DestinationPath: Sendable {
  package let parent: String
  package let name: String

  /// Splits a path.
  ///
  /// - Returns: `nil` if the path has no name of its own at its end: `/`, `.`, `..`, or the empty path.
  package init?(_ path: String) {
    var trimmed = Substring(path)
    while trimmed.count > 1, trimmed.hasSuffix("/") { trimmed = trimmed.dropLast() }
    let lastSlash = trimmed.lastIndex(of: "/")
    name = String(lastSlash.map { trimmed[trimmed.index(after: $0)...] } ?? trimmed)
    parent = lastSlash.map { $0 == trimmed.startIndex ? "/" : String(trimmed[..<$0]) } ?? "."
    if name.isEmpty || name == "." || name == ".." { return nil }
  }

  /// Returns a hidden name next to the destination, random so that no other process can predict it.
  package func sibling(_ suffix: String) -> String {
    let random = String(UInt32.random(in: .min ... .max), radix: 16)
    return ".\(stem).\(random).\(suffix)"
  }

  /// The destination's name, shortened to 200 bytes if it is longer. The name of a sibling then stays below the usual
  /// limit of 255 bytes.
  private var stem: String {
    let maximumByteCount = 200
    if name.utf8.count <= maximumByteCount { return name }
    // A scalar has at most 4 bytes of UTF-8.
    return String(name.unicodeScalars.prefix(maximumByteCount / 4).map(Character.init))
  }

  /// Returns whether `sibling(_:)` makes this name for a file that is being written. Names of replaced backups never
  /// match.
  package func isTemporarySibling(_ candidate: String) -> Bool { isSibling(candidate, suffix: "tmp") }

  /// Returns whether `sibling(_:)` makes this name, for a new or a replaced file.
  package func isSibling(_ candidate: String) -> Bool {
    isTemporarySibling(candidate) || isSibling(candidate, suffix: "old")
  }

  private func isSibling(_ candidate: String, suffix: String) -> Bool {
    let prefix = ".\(stem)."
    guard candidate.hasPrefix(prefix), candidate.hasSuffix("." + suffix) else { return false }
    let digits = candidate.dropFirst(prefix.count).dropLast(suffix.count + 1)
    return (1...8).contains(digits.count) && digits.allSatisfy { $0.isASCII && $0.isHexDigit }
  }
}
