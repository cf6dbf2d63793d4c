import Basics
import KeychainCrypto

/// The digest of a backup's metadata and keychain file. It is the same for a folder and a container file.
///
/// The digest is the SHA-256 of a list with one line per file, sorted by path. The files are `Manifest.plist`, the list
/// of files, the keychain file, and the write-ahead log and rollback journal of the list. A missing file has no line.
///
///     <path> NUL <size in bytes> NUL <64 hexadecimal digits, SHA-256 of the stored bytes> LF
///
/// A log or journal also has no line if it is empty, above its size limit or, in a folder, not a regular file. In the
/// last two cases it is not read, and the backup has the finding `listJournalUnread` if it has a `Manifest.db`.
enum BackupDigest {
  /// Returns `sha256:` and 64 hexadecimal digits.
  static func digest(of metadata: MetadataFiles, layout: BackupLayout) throws(KeyhaulError) -> String {
    var lines: [(path: String, text: String)] = []
    for file in [.manifest, layout.listPart, layout.keychainPart] + layout.journals {
      if let data = metadata[large: file] {
        lines.append((file.path, line(for: file, data.byteCount, sha256: String(hexadecimal: data.sha256))))
      } else if let bytes = metadata[file] {
        lines.append((file.path, line(for: file, bytes.count, sha256: try hexadecimalSHA256(of: bytes))))
      }
    }
    // Paths are compared as bytes, so that the order does not depend on the locale.
    lines.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    return "sha256:" + (try hexadecimalSHA256(of: lines.flatMap { Array($0.text.utf8) }))
  }

  private static func line(for file: MetadataFile, _ byteCount: Int, sha256: String) -> String {
    "\(file.path)\0\(byteCount)\0\(sha256)\n"
  }

  private static func hexadecimalSHA256(of bytes: [UInt8]) throws(KeyhaulError) -> String {
    try translatingErrors(in: "the digest") { () throws(DataProtectionError) in
      String(hexadecimal: try Digest.sha256(bytes))
    }
  }
}
