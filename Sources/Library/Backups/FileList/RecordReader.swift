import Basics
import KeychainCrypto
import KeychainFormats

/// The salt of the records that iOS 10.0 sealed one by one, as the table `Properties` of the list has it.
enum RecordSalt: Sendable, Equatable {
  case bytes([UInt8])
  /// There is none, or none that a device writes.
  case unusable(reason: String)

  /// Bytes of the longest salt that is taken. Devices write a few.
  static let maximumByteCount = 1024

  init(_ values: [[UInt8]?]) {
    let name = "\(StoredPart.database.path) encrypts its records and has"
    switch values.count {
    case 0: self = .unusable(reason: "\(name) no salt for them")
    case 1:
      guard let salt = values[0] else {
        self = .unusable(reason: "\(name) a salt for them that is neither data nor text")
        return
      }
      self =
        (1...Self.maximumByteCount).contains(salt.count)
        ? .bytes(salt) : .unusable(reason: "\(name) a salt of \(Amounts.count(salt.count, "byte")) for them")
    default: self = .unusable(reason: "\(name) several salts for them")
    }
  }
}

/// Reads what a row says of its file: a keyed archive in clear, or one that iOS 10.0 sealed.
struct RecordReader: Sendable {
  /// `nil` where no record can be opened.
  let key: RecordKey?

  /// What stands in a row's last column.
  enum Record: Sendable, Hashable {
    case none
    case archive([UInt8])
    /// One that is there and cannot be had.
    case closed(reason: String)
  }

  static let plistMagic = Array("bplist00".utf8)

  /// The record in a column. Each row decides for itself whether it is sealed.
  func record(in row: borrowing ForeignRow, _ column: Int32) -> Record {
    guard let stored = row.bytes(column) else { return .none }
    guard let key, !stored.starts(with: Self.plistMagic), !stored.isEmpty else {
      // A text is a record only where it stands for sealed bytes.
      return row.data(column) == nil ? .none : .archive(stored)
    }
    do throws(DataProtectionError) {
      return .archive(try key.open(Self.sealedBytes(stored)))
    } catch {
      return .closed(reason: error.reason)
    }
  }

  /// What the record says of the file; `nil` where there is none, or a damaged one.
  func file(in row: borrowing ForeignRow, _ column: Int32) -> FileRecord? {
    guard case .archive(let bytes) = record(in: row, column) else { return nil }
    return try? FileRecord(archive: bytes)
  }

  /// Devices wrote sealed records in base64; some copies hold the bytes themselves.
  private static func sealedBytes(_ stored: [UInt8]) -> [UInt8] { Base64Digits.bytes(of: stored) ?? stored }
}
