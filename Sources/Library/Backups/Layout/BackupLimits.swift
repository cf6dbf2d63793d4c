package import Basics

/// The limits for reading a backup, checked before memory is allocated or work is done.
///
/// The default limits are sufficient for a backup of a full 1 TB iPhone.
public struct BackupLimits: Sendable {
  /// The maximum number of entries in a container.
  package var entryCount = 2_000_000
  /// The maximum claimed size of an entry in bytes.
  package var entryByteCount: Int64 = 1 << 40
  /// The maximum total claimed size of all entries in bytes.
  package var totalByteCount: Int64 = 1 << 42
  /// The maximum size of an entry's name in UTF-8 bytes.
  package var pathByteCount = 1024
  /// The maximum size of each of `Manifest.plist`, `Status.plist`, and `Info.plist` in bytes.
  package var propertyListByteCount = 64 << 20
  /// The maximum size of the manifest database in bytes.
  package var databaseByteCount = 1 << 30
  /// The maximum size of `Manifest.db-wal` or `Manifest.db-journal` in bytes, which are read into memory. Longer files
  /// are not read.
  package var journalByteCount = 256 << 20
  /// The maximum size of `Manifest.mbdb` in bytes, which is read into memory. A full 256 GB device with a
  /// million files has a manifest of about 200 MB.
  package var oldDatabaseByteCount = 256 << 20
  /// The maximum size of the keychain file in bytes. The limit is lower in a small container.
  package var keychainByteCount = 1 << 30
  /// The maximum size of `Keyhaul.seal` in bytes. It has about 120 bytes for each file.
  package var sealByteCount = 256 << 20
  /// The maximum number of cut-off payloads in a container. After each, the container is read again from the start.
  package var resumptionCount = 100
  /// The maximum ratio of decompressed to compressed bytes above `decompressionAllowance`.
  package var expansionFactor: Int64 = 200
  /// The number of decompressed bytes that are always allowed.
  package var decompressionAllowance: Int64 = 64 << 20

  /// The maximum number of rows of a manifest in any format. A backup of a full 1 TB iPhone has a million.
  static let rowCount = 2_000_000
  /// The maximum number of domains of a manifest. Each app has a few.
  static let domainCount = 100_000

  /// Returns the maximum decompressed size of a file with the given size.
  package func decompressedByteCount(of byteCount: Int64) -> Int64 {
    let (product, overflow) = byteCount.multipliedReportingOverflow(by: expansionFactor)
    let (sum, sumOverflow) = decompressionAllowance.addingReportingOverflow(product)
    return overflow || sumOverflow ? .max : sum
  }

  /// Returns the maximum size of the keychain file in a container. Its items are encrypted and thus incompressible, so
  /// a small container cannot contain a large one.
  ///
  /// - Parameter containerByteCount: The container's size in bytes, or `nil` if the container is a stream.
  package func keychainByteCount(inContainerOf containerByteCount: Int64?) -> Int {
    guard let containerByteCount else { return min(keychainByteCount, Self.streamedKeychainByteCount) }
    // The factor leaves room for the parts of the file that can be compressed.
    let (product, overflow) = containerByteCount.multipliedReportingOverflow(by: 4)
    let (sum, sumOverflow) = decompressionAllowance.addingReportingOverflow(product)
    return overflow || sumOverflow ? keychainByteCount : min(keychainByteCount, Int(clamping: sum))
  }

  /// The maximum size of the keychain file in a stream of unknown length.
  private static let streamedKeychainByteCount = 256 << 20

  package var expansionError: KeyhaulError {
    KeyhaulError(.overLimit, "its data expands to more than \(expansionFactor) times its compressed size")
  }

  /// The maximum total size in bytes of the metadata files that are kept from a container, including the keychain files
  /// and the journals of both kinds.
  package var retainedByteCount: Int64 {
    Int64(databaseByteCount) + Int64(oldDatabaseByteCount) + 2 * Int64(keychainByteCount)
      + 2 * Int64(journalByteCount)
      + 3 * Int64(propertyListByteCount) + Int64(sealByteCount)
  }

  /// Creates the standard limits.
  package init() {}

  /// The standard limits, sufficient for a backup of a full 1 TB iPhone.
  public static let standard = BackupLimits()
}
