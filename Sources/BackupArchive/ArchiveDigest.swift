import DataProtection

/// What identifies a backup's content, whatever it is packed in.
///
/// SHA-256 over one line for each of the stored manifest, manifest database and keychain file, sorted by path: path, NUL,
/// size in decimal, NUL, the file's SHA-256 in hexadecimal, line feed.
enum ArchiveDigest {
  /// - Returns: `sha256:` and 64 hexadecimal digits.
  static func digest(of parts: StoredParts) throws(BackupArchiveError) -> String {
    var lines: [(path: String, line: String)] = []
    for part in [StoredPart.manifest, .database, .keychain] {
      guard let bytes = parts[part] else { continue }
      lines.append((part.path, "\(part.path)\0\(bytes.count)\0\(try sha256(bytes))\n"))
    }
    // By bytes, so that no locale decides.
    lines.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    return "sha256:" + (try sha256(lines.flatMap { Array($0.line.utf8) }))
  }

  private static func sha256(_ bytes: [UInt8]) throws(BackupArchiveError) -> String {
    try explained("the digest") { () throws(DataProtectionError) in hexadecimal(try Digest.sha256(bytes)) }
  }
}
