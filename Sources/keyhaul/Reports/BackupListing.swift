import BackupArchive
import KeychainFormats
import MigrationReports

/// The backups in a folder of several, and how to choose one (`backup-list/1`).
struct BackupListing {
  let folder: String
  let backups: [BackupFolder.Entry]

  func say(in session: Session) throws(CommandFailure) {
    if session.isJSON { return try session.answer(json) }
    var table = Table([
      .init("FOLDER", flexible: true), .init("DEVICE", flexible: true), .init("MADE"), .init("PASSWORD"),
    ])
    for backup in backups {
      table.add([
        HostileText.shown(backup.name), HostileText.shown(backup.deviceName ?? "-"),
        backup.date.map { TimeText.localWithoutZone($0) } ?? "-", Self.password(backup),
      ])
    }
    try session.say(table)
    let parent = folder.hasSuffix("/") ? String(folder.dropLast()) : folder
    guard let first = backups.first else { return }
    try session.say("Name one of them: keyhaul inspect \(ShellWord.quoted("\(parent)/\(first.name)"))")
  }

  private static func password(_ backup: BackupFolder.Entry) -> String {
    guard let isEncrypted = backup.isEncrypted else { return "manifest damaged" }
    return isEncrypted ? "yes" : "no"
  }

  private var json: JSONValue {
    [
      "format": "backup-list/1", "folder": .string(folder),
      "backups": .array(
        backups.map { backup in
          [
            "name": .string(backup.name), "udid": .text(backup.identifier), "device_name": .text(backup.deviceName),
            "made": .text(backup.date.map { Timestamp.text(of: $0) }),
            "encrypted": backup.isEncrypted.map { .boolean($0) } ?? .null,
            "archived_copy": .boolean(backup.isArchivedCopy),
          ]
        }),
    ]
  }
}
