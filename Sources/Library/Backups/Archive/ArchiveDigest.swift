import Basics
import KeychainCrypto
import KeychainFormats

/// What identifies a backup's content, whatever it is packed in.
///
/// SHA-256 over one line for each of the stored manifest, list of files, keychain file, and log and journal of the list where
/// they are not empty, sorted by path: path, NUL, size in decimal, NUL, the file's SHA-256 in hexadecimal, line feed.
enum ArchiveDigest {
  /// - Returns: `sha256:` and 64 hexadecimal digits.
  static func digest(of parts: StoredParts, layout: BackupLayout) throws(BackupArchiveError) -> String {
    var lines: [(path: String, line: String)] = []
    for part in [.manifest, layout.listPart, layout.keychainPart] + layout.journals {
      if let stored = parts[large: part] {
        lines.append((part.path, line(part, stored.byteCount, String(hexadecimal: stored.sha256))))
      } else if let bytes = parts[part] {
        lines.append((part.path, line(part, bytes.count, try sha256(bytes))))
      }
    }
    // By bytes, so that no locale decides.
    lines.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    return "sha256:" + (try sha256(lines.flatMap { Array($0.line.utf8) }))
  }

  private static func line(_ part: StoredPart, _ byteCount: Int, _ sum: String) -> String {
    "\(part.path)\0\(byteCount)\0\(sum)\n"
  }

  private static func sha256(_ bytes: [UInt8]) throws(BackupArchiveError) -> String {
    try explained("the digest") { () throws(DataProtectionError) in String(hexadecimal: try Digest.sha256(bytes)) }
  }
}
