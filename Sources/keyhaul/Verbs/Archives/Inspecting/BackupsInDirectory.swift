import BackupArchive
import CommandArguments
import CommandSession
import KeychainFormats

/// The backups in a directory of several, and how to choose one (`backup-list/1`).
struct BackupsInDirectory: Report {
  let directory: String
  let backups: [BackupDirectory.Entry]

  /// A table, or where it would be too wide a few lines for each: a name is there to be typed, and never cut.
  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    guard let proposal = BackupChoice.proposal(among: backups, in: directory) else { return [] }
    let table = self.table
    let list = table.fits(style) ? table.lines(style: style) : backups.flatMap { Self.block(of: $0, style: style) }
    return list + [
      "Their property lists alone were read; verify says whether one is whole.",
      "Name one of them: keyhaul inspect \(proposal)",
    ]
  }

  private var table: Table {
    var table = Table([.init("FOLDER"), .init("DEVICE"), .init("MADE"), .init("PASSWORD"), .init("STATE")])
    for backup in backups {
      table.add([
        backup.name, backup.deviceName ?? "-", Self.made(backup) ?? "-", Self.password(backup), Self.state(backup),
      ])
    }
    return table
  }

  private static func block(of backup: BackupDirectory.Entry, style: TextStyle) -> [String] {
    let facts = [
      "device    \(backup.deviceName ?? "-")", "made      \(made(backup) ?? "-")", "password  \(password(backup))",
      "state     \(state(backup))",
    ]
    return [style.painted(style.adapted(HostileText.shown(backup.name)), .bold)]
      + facts.map {
        DisplayWidth.cut("  " + style.adapted(HostileText.shown($0)), columns: style.width, ellipsis: style.ellipsis)
      }
  }

  private static func made(_ backup: BackupDirectory.Entry) -> String? {
    backup.date.map { TimeText.local($0) }
  }

  private static func password(_ backup: BackupDirectory.Entry) -> String {
    backup.isEncrypted.map { $0 ? "yes" : "no" } ?? "-"
  }

  private static func state(_ backup: BackupDirectory.Entry) -> String { backup.state?.rawValue ?? "-" }

  var json: JSONValue {
    [
      "format": "backup-list/1", "folder": .string(directory),
      "backups": .array(
        backups.map { backup in
          [
            "name": .string(backup.name), "udid": .text(backup.identifier), "device_name": .text(backup.deviceName),
            "made": .text(backup.date.map { Timestamp.text(of: $0) }),
            "encrypted": backup.isEncrypted.map { .boolean($0) } ?? .null,
            "state": .text(backup.state?.rawValue), "archived_copy": .boolean(backup.isArchivedCopy),
          ]
        }),
    ]
  }
}
