import Basics
import KeychainCrypto
import KeychainFormats

@testable import Backups

/// The named fields of a backup's files, to describe the effect of a changed bit.
///
/// The name of a field consists of its file and its name in it: "Manifest.plist Date", "keybag class WRAP",
/// "Manifest.db permissions".
struct BackupFields {
  private var fields: [String: [String]] = [:]

  /// Reads the fields of a backup.
  ///
  /// - Parameter path: The stored path of the file without a digest.
  init(of backup: EditableBackup, fileWithoutDigest path: String) throws {
    let archive = try backup.open()
    for part in ["Manifest.plist", "Status.plist"] {
      addFields(of: try BinaryPlist.decode(try backup.read(part)), as: part)
    }
    addFields(of: archive.keybag)
    let keys = try archive.keybag.unlock(password: Secret(utf8: EditableBackup.password), deviceKey: nil)
    try archive.fileList(with: keys).forEachFile { file throws(KeyhaulError) in
      try addFields(of: file)
    }
    fields["content of a file without a digest"] = [String(hexadecimal: try backup.read(path))]
  }

  /// Returns the names of a previous backup's fields that are missing or different in this one.
  func changed(since before: BackupFields) -> Set<String> {
    Set(before.fields.keys.filter { fields[$0] != before.fields[$0] })
  }

  /// The fields whose changes are not detected without a seal. Source: `docs/Format.md`, "What a flipped bit means".
  static let undetected: Set<String> = [
    "Manifest.plist Date", "Manifest.plist Version", "Manifest.plist IsEncrypted", "Manifest.plist WasPasscodeSet",
    "Manifest.plist Lockdown UniqueDeviceID", "Manifest.plist Lockdown DeviceName",
    "Manifest.plist Lockdown ProductType", "Manifest.plist Lockdown ProductVersion",
    "Status.plist BackupState", "Status.plist Date", "Status.plist IsFullBackup", "Status.plist SnapshotState",
    "Status.plist Version",
    "keybag header VERS", "keybag header TYPE", "keybag header HMCK", "keybag header WRAP", "keybag header DPWT",
    "keybag class UUID", "keybag class CLAS", "keybag class KTYP", "keybag class WRAP", "keybag class WPKY",
    "Manifest.db permissions", "Manifest.db inode", "Manifest.db owner", "Manifest.db times", "Manifest.db size",
    "Manifest.db class", "Manifest.db flags", "Manifest.db path", "Manifest.db type", "Manifest.db digest",
    "content of a file without a digest",
  ]
  /// The start of the row for each group of fields in the table of `docs/Format.md`. A test compares both.
  ///
  /// The keys are the beginnings of the fields' names.
  static let documentedRowPrefixes = [
    "Manifest.plist": "`Manifest.plist`", "Status.plist": "`Status.plist`", "keybag header": "`VERS",
    "keybag class": "a class's", "Manifest.db": "`Manifest.db`", "content": "a file without a digest",
  ]

  /// Adds a value, or the values of a dictionary. The keys of nested dictionaries become part of the name.
  private mutating func addFields(of value: PropertyValue, as name: String) {
    guard let dictionary = value.dictionaryValue else {
      // The first value of a duplicate key counts, as in `PropertyDictionary`.
      if fields[name] == nil { fields[name] = ["\(value)"] }
      return
    }
    for entry in dictionary.entries where entry.key != .string("BackupKeyBag") {
      addFields(of: entry.value, as: "\(name) \(entry.key.stringValue ?? "?")")
    }
  }

  private mutating func addFields(of keybag: Keybag) {
    func addRecords(_ records: [Keybag.Record], section: String) {
      for record in records {
        fields["keybag \(section) \(record.tag)", default: []].append(String(hexadecimal: record.value))
      }
    }
    addRecords(keybag.header, section: "header")
    for key in keybag.classKeys { addRecords(key.records, section: "class") }
  }

  private mutating func addFields(of file: ListedFile) throws(KeyhaulError) {
    func addField(_ name: String, _ value: Any?) {
      fields["Manifest.db \(name)", default: []].append(value.map { "\($0)" } ?? "none")
    }
    addField("identifier", file.fileIdentifier)
    addField("domain", file.domain)
    addField("row's path", file.relativePath)
    addField("kind", file.kind)
    guard let record = try file.record() else { return }
    addField("path", record.relativePath)
    addField("target", record.target)
    addField("digest", record.digest)
    addField("key", record.encryptionKey?.serialized())
    addField("type", record.mode & 0o170000)
    addField("permissions", record.mode & 0o7777)
    addField("inode", record.inode)
    addField("owner", [record.userID, record.groupID])
    addField("times", [record.lastModified, record.lastStatusChange, record.birth])
    addField("size", record.size)
    addField("class", record.protectionClass)
    addField("attributes", record.extendedAttributes)
    addField("flags", record.flags)
  }
}
