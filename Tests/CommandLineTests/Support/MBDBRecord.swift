import KeyhaulKit
import TestSupport

/// Writes the records of a `Manifest.mbdb`, the manifest of iOS 4 to 9, independently of the library.
enum MBDBRecord {
  /// The bytes before the first record.
  static let header = Array("mbdb".utf8) + [5, 0]

  /// Returns the record of a file, folder or link.
  ///
  /// - Parameters:
  ///   - path: The path in the domain, which need not be UTF-8.
  ///   - mode: The `st_mode`: 0o100000 for a file, 0o040000 for a folder, 0o120000 for a link.
  ///   - modified: The time of the last change, in seconds since 1970.
  static func bytes(
    domain: String, path: [UInt8], content: [UInt8], mode: Int = 0o100644, modified: Int = 0, hasDigest: Bool = true
  ) throws -> [UInt8] {
    func integer(_ value: Int, byteCount: Int) -> [UInt8] {
      (0..<byteCount).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    func string(_ value: [UInt8]) -> [UInt8] { integer(value.count, byteCount: 2) + value }
    let absent: [UInt8] = [0xFF, 0xFF]
    let (linkTarget, encryptionKey) = (absent, absent)
    let digest = hasDigest ? string(try Digest.sha1(content)) : absent
    let (inode, userID, groupID) = (integer(7, byteCount: 8), integer(501, byteCount: 4), integer(501, byteCount: 4))
    let times = integer(modified, byteCount: 4) + integer(0, byteCount: 4) + integer(0, byteCount: 4)
    let (protectionClass, propertyCount): (UInt8, UInt8) = (4, 0)
    return string(Array(domain.utf8)) + string(path) + linkTarget + digest + encryptionKey
      + integer(mode, byteCount: 2) + inode + userID + groupID + times + integer(content.count, byteCount: 8)
      + [protectionClass, propertyCount]
  }

  /// Returns the name under which the backup stores a file.
  static func fileName(domain: String, path: [UInt8]) throws -> String {
    try Digest.sha1(Array("\(domain)-".utf8) + path).hex
  }
}
