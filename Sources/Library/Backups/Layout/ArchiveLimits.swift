package import Basics
import KeychainFormats

/// The most that reading a backup accepts, checked before memory is taken or work is done.
///
/// The defaults leave room for a backup of a full 1 TB iPhone; a container that needs more is not one.
public struct ArchiveLimits: Sendable {
  /// Entries of one container.
  package var entryCount = 2_000_000
  /// Bytes that a single entry of a container may claim.
  package var entryByteCount: Int64 = 1 << 40
  /// Bytes that all entries of a container together may claim.
  package var totalByteCount: Int64 = 1 << 42
  /// UTF-8 bytes of an entry's name.
  package var pathByteCount = 1024
  /// Bytes of `Manifest.plist`, `Status.plist` and `Info.plist` each.
  package var propertyListByteCount = 64 << 20
  /// Bytes of the stored manifest database.
  package var databaseByteCount = 1 << 30
  /// Bytes of a `Manifest.db-wal` or a `Manifest.db-journal`, which is read into memory. A longer one is not read.
  package var journalByteCount = 256 << 20
  /// Bytes of a `Manifest.mbdb`, which is read into memory.
  package var oldDatabaseByteCount = MBDBManifest.maximumByteCount
  /// Bytes of the stored keychain file; in a container fewer, as that is long.
  package var keychainByteCount = 1 << 30
  /// Bytes of a `Keyhaul.seal`: it has about 120 for each file.
  package var sealByteCount = 256 << 20
  /// Payloads of one container that may break off while all are read. After each the container is gone through again.
  package var resumptionCount = 100
  /// How many bytes a compressed byte may become, above `decompressionAllowance`.
  package var expansionFactor: Int64 = 200
  /// Decompressed bytes that need no justification by compressed ones.
  package var decompressionAllowance: Int64 = 64 << 20

  /// To how many bytes a compressed file of this many may become, all its entries together.
  package func decompressedByteCount(of byteCount: Int64) -> Int64 {
    let (justified, overflow) = byteCount.multipliedReportingOverflow(by: expansionFactor)
    let (sum, sumOverflow) = decompressionAllowance.addingReportingOverflow(justified)
    return overflow || sumOverflow ? .max : sum
  }

  /// Bytes of the keychain's file in a container: its items are sealed and do not become shorter, so that a small file has
  /// no large one in it.
  ///
  /// - Parameter containerByteCount: `nil` for a stream.
  package func keychainByteCount(inContainerOf containerByteCount: Int64?) -> Int {
    guard let containerByteCount else { return min(keychainByteCount, Self.streamedKeychainByteCount) }
    let (justified, overflow) = containerByteCount.multipliedReportingOverflow(by: 4)
    let (sum, sumOverflow) = decompressionAllowance.addingReportingOverflow(justified)
    return overflow || sumOverflow ? keychainByteCount : min(keychainByteCount, Int(clamping: sum))
  }

  /// Of one that comes as a stream, of which nobody knows how long it is.
  private static let streamedKeychainByteCount = 256 << 20

  package var expansionError: KeyhaulError {
    KeyhaulError(.overLimit, "its data expands to more than \(expansionFactor) times its compressed size")
  }

  /// Bytes that are kept of one container, all wanted files together.
  package var keptByteCount: Int64 {
    Int64(databaseByteCount) + Int64(oldDatabaseByteCount) + 2 * Int64(keychainByteCount)
      + 2 * Int64(journalByteCount)
      + 3 * Int64(propertyListByteCount) + Int64(sealByteCount)
  }

  /// Creates the standard limits, to change single ones of.
  package init() {}

  /// Limits that a backup of a full 1 TB iPhone stays under.
  public static let standard = ArchiveLimits()
}
