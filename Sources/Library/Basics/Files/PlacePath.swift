/// A path cut into the directory that holds its last part, and that part; and the names that are temporary beside it.
package struct PlacePath: Sendable {
  package let parent: String
  package let name: String

  /// - Returns: `nil` if the path has no last part of its own: `/`, `.`, `..`, or nothing.
  package init?(_ path: String) {
    var rest = Substring(path)
    while rest.count > 1, rest.hasSuffix("/") { rest = rest.dropLast() }
    let cut = rest.lastIndex(of: "/")
    name = String(cut.map { rest[rest.index(after: $0)...] } ?? rest)
    parent = cut.map { $0 == rest.startIndex ? "/" : String(rest[..<$0]) } ?? "."
    if name.isEmpty || name == "." || name == ".." { return nil }
  }

  /// A name beside the target that no one else uses: hidden, and random so that nothing can lie in wait there.
  package func sibling(_ suffix: String) -> String {
    let random = String(UInt32.random(in: .min ... .max), radix: 16)
    return ".\(stem).\(random).\(suffix)"
  }

  private var stem: String {
    name.utf8.count > 200 ? String(name.unicodeScalars.prefix(50).map(Character.init)) : name
  }

  /// Whether a name is one that `sibling` makes for what is being written. A replaced backup's name never is.
  package func isTemporarySibling(_ candidate: String) -> Bool { isSibling(candidate, "tmp") }

  /// Whether a name is one that `sibling` makes, of either kind.
  package func isSibling(_ candidate: String) -> Bool { isTemporarySibling(candidate) || isSibling(candidate, "old") }

  private func isSibling(_ candidate: String, _ suffix: String) -> Bool {
    let prefix = ".\(stem)."
    guard candidate.hasPrefix(prefix), candidate.hasSuffix("." + suffix) else { return false }
    let digits = candidate.dropFirst(prefix.count).dropLast(suffix.count + 1)
    return (1...8).contains(digits.count) && digits.allSatisfy { $0.isASCII && $0.isHexDigit }
  }
}
