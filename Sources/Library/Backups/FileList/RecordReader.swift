import Basics
import KeychainCrypto
import KeychainFormats

/// A reader of row records: keyed archives, which iOS 10.0 encrypted.
struct RecordReader: Sendable {
  /// The key, or `nil` if records cannot be decrypted.
  let key: ManifestRecordKey?

  /// The record in a row's last column.
  enum Record: Sendable, Hashable {
    case none
    case archive([UInt8])
    /// A record that cannot be decrypted.
    case undecryptable(reason: String)
  }

  static let plistMagic = Array("bplist00".utf8)

  /// Returns the record in a column. An unencrypted record is recognized by its first bytes.
  func record(in row: borrowing UntrustedRow, _ column: Int32) -> Record {
    guard let stored = row.bytes(column) else { return .none }
    guard let key, !stored.starts(with: Self.plistMagic), !stored.isEmpty else {
      // Text is a record only if it encodes encrypted bytes.
      return row.data(column) == nil ? .none : .archive(stored)
    }
    do throws(DataProtectionError) {
      return .archive(try key.open(Self.encryptedBytes(stored)))
    } catch {
      return .undecryptable(reason: error.reason)
    }
  }

  /// Returns the decoded record in a column, or `nil` if it is missing or unreadable.
  func file(in row: borrowing UntrustedRow, _ column: Int32) -> FileRecord? {
    guard case .archive(let bytes) = record(in: row, column) else { return nil }
    return try? FileRecord(archive: bytes)
  }

  /// Returns the encrypted bytes. Devices encoded them with Base64, but some copies do not.
  private static func encryptedBytes(_ stored: [UInt8]) -> [UInt8] { Base64Digits.bytes(of: stored) ?? stored }
}
