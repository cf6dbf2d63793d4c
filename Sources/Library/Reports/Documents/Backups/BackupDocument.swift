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
  ///   - report: The items that the backup contains, and those that it omits.
  ///   - device: The device's name.
  ///   - archive: The path of the backup, as the user typed it.
  ///   - written: The backup that was written; `nil` in a dry run.
  ///   - isEncrypted: Whether the backup has a password.
  ///   - isKeyPublished: Whether anyone can compute the device's hardware key, because its seed is published.
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
      "left_out": .array(report.leftOutItems.map(Self.json)), "deleted": .array(report.tombstones.map(Self.json)),
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
