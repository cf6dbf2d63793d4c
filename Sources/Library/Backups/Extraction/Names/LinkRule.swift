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
