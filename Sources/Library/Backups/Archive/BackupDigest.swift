import Basics
import KeychainCrypto

/// The digest of a backup's content, independent of its packing.
///
/// The digest is SHA-256 over one line for each of the stored `Manifest.plist`, list of files, and keychain file, and
/// for the list's log and journal if they are not empty. The lines are sorted by path:
///
///     <path> NUL <size in bytes> NUL <64 hexadecimal digits, SHA-256 of the stored bytes> LF
enum BackupDigest {
  /// Returns `sha256:` and 64 hexadecimal digits.
  static func digest(of parts: MetadataFiles, layout: BackupLayout) throws(KeyhaulError) -> String {
    var lines: [(path: String, line: String)] = []
    for part in [.manifest, layout.listPart, layout.keychainPart] + layout.journals {
      if let stored = parts[large: part] {
        lines.append((part.path, line(part, stored.byteCount, sha256: String(hexadecimal: stored.sha256))))
      } else if let bytes = parts[part] {
        lines.append((part.path, line(part, bytes.count, sha256: try sha256(bytes))))
      }
    }
    // Paths are compared as bytes, so that the order does not depend on the locale.
    lines.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    return "sha256:" + (try sha256(lines.flatMap { Array($0.line.utf8) }))
  }

  private static func line(_ part: MetadataFile, _ byteCount: Int, sha256: String) -> String {
    "\(part.path)\0\(byteCount)\0\(sha256)\n"
  }

  private static func sha256(_ bytes: [UInt8]) throws(KeyhaulError) -> String {
    try translatingErrors(in: "the digest") { () throws(DataProtectionError) in
      String(hexadecimal: try Digest.sha256(bytes))
    }
  }
}
