package import KeyhaulKit

/// The result of `backup`, or of its dry run (`backup-result/1`).
package struct BackupDocument {
  private let report: ExportReport
  private let device: String
  private let archive: String
  private let written: WrittenBackup?
  private let isEncrypted: Bool
  private let isKeyPublished: Bool

  /// Creates the document of a backup.
  ///
  /// - Parameters:
  ///   - report: The items that the backup contains and the items that it omits.
  ///   - device: The device's name.
  ///   - archive: The path of the backup, as the user typed it.
  ///   - written: The backup that was written; `nil` in a dry run.
  ///   - isEncrypted: Whether the backup has a password.
  ///   - isKeyPublished: Whether anyone can compute the device key, because its seed is published.
  package init(
    _ report: ExportReport, of device: String, to archive: String, written: WrittenBackup?, isEncrypted: Bool,
    isKeyPublished: Bool
  ) {
    self.report = report
    self.device = device
    self.archive = archive
    self.written = written
    self.isEncrypted = isEncrypted
    self.isKeyPublished = isKeyPublished
  }

  package var json: JSONValue {
    [
      "format": "backup-result/1", "device": .string(device), "archive": .text(written?.path ?? archive),
      "encrypted": .boolean(isEncrypted), "bytes": written.map { .integer($0.byteCount) } ?? .null,
      "items": .count(report.exportedCount), "total": .count(report.total),
      "left_out": .array(report.omittedItems.map(Self.json)), "deleted": .array(report.tombstones.map(Self.json)),
      "published_hardware_key": .boolean(isKeyPublished),
    ]
  }

  private static func json(_ decision: MigrationPlan.Decision) -> JSONValue {
    .object(
      JSONValue.identity(decision.identity) + [
        ("protection", .text(decision.protection?.rawValue)), ("reason", .text(decision.outcome.reason?.rawValue)),
      ] + (decision.detail.map { [("detail", .string($0))] } ?? []))
  }
}

/// The result of `seal`, or of its dry run (`seal-result/1`).
package struct SealDocument {
  package let json: JSONValue

  /// Creates the document of a seal.
  ///
  /// - Parameters:
  ///   - archive: The backup.
  ///   - name: The path of the backup, as the user typed it.
  ///   - fileCount: The number of files that the seal covers; `nil` if there is no seal yet.
  ///   - isWritten: Whether this call wrote the seal.
  ///   - isDryRun: Whether the user asked for a dry run.
  package init(of archive: BackupArchive, named name: String, fileCount: Int?, isWritten: Bool, isDryRun: Bool) {
    json = [
      "format": "seal-result/1", "archive": .string(name), "digest": .string(archive.digest),
      "keyed": .boolean(archive.usesKeyedSeal), "files": fileCount.map { .count($0) } ?? .null,
      "written": .boolean(isWritten), "dry_run": .boolean(isDryRun),
    ]
  }
}

/// The result of `rekey`, or of its dry run (`rekey-result/1`).
package struct RekeyDocument {
  package let json: JSONValue

  /// Creates the document of a changed password or iteration count.
  ///
  /// - Parameters:
  ///   - archive: The path of the backup, as the user typed it.
  ///   - keybag: The keybag after the change.
  ///   - isEncrypted: Whether the backup has a password after the change.
  ///   - isWritten: Whether this call changed the backup.
  ///   - isDryRun: Whether the user asked for a dry run.
  ///   - isKeyProven: Whether an item confirms the device key that was used; `nil` if no device key was used.
  package init(
    of archive: String, _ keybag: Keybag, isEncrypted: Bool, isWritten: Bool, isDryRun: Bool, isKeyProven: Bool? = nil
  ) {
    // The slow derivation comes first.
    let iterationCounts = [keybag.secondStep?.iterations, keybag.iterations].compactMap(\.self)
    json = [
      "format": "rekey-result/1", "archive": .string(archive), "encrypted": .boolean(isEncrypted),
      "rounds": .array(iterationCounts.map { .integer(Int64($0)) }), "written": .boolean(isWritten),
      "dry_run": .boolean(isDryRun), "device_key_proven": isKeyProven.map { .boolean($0) } ?? .null,
    ]
  }
}
