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

  init(of backup: EditableBackup, undigested: String) throws {
    let archive = try backup.open()
    for part in ["Manifest.plist", "Status.plist"] {
      add(try BinaryPlist.decode(try backup.read(part)), as: part)
    }
    add(archive.keybag)
    let keys = try archive.keybag.unlock(password: Secret(utf8: EditableBackup.password), deviceKey: nil)
    try archive.fileList(with: keys).forEachFile { file throws(KeyhaulError) in
      try add(file)
    }
    fields["content of a file without a digest"] = [String(hexadecimal: try backup.read(undigested))]
  }

  /// Returns the names of a previous backup's fields that are missing or different in this one.
  func changed(since before: BackupFields) -> Set<String> {
    Set(before.fields.keys.filter { fields[$0] != before.fields[$0] })
  }

  /// The fields whose changes are not detected without a seal. Source: `docs/Format.md`, "What a flipped bit means".
  static let undetected: Set<String> = Set(undetectedByFile.flatMap { file, fields in fields.map { "\(file) \($0)" } })
  /// The beginnings of the page's rows for these fields.
  static let rows = [
    "Manifest.plist": "`Manifest.plist`", "Status.plist": "`Status.plist`", "keybag header": "`VERS",
    "keybag class": "a class's", "Manifest.db": "`Manifest.db`", "content": "a file without a digest",
  ]
  static let undetectedByFile = [
    "Manifest.plist": [
      "Date", "Version", "IsEncrypted", "WasPasscodeSet", "Lockdown UniqueDeviceID", "Lockdown DeviceName",
      "Lockdown ProductType", "Lockdown ProductVersion",
    ],
    "Status.plist": ["BackupState", "Date", "IsFullBackup", "SnapshotState", "Version"],
    "keybag header": ["VERS", "TYPE", "HMCK", "WRAP", "DPWT"],
    "keybag class": ["UUID", "CLAS", "KTYP", "WRAP", "WPKY"],
    "Manifest.db": [
      "permissions", "inode", "owner", "times", "size", "class", "flags", "path", "type", "digest",
    ],
    "content": ["of a file without a digest"],
  ]

  private mutating func add(_ value: PropertyValue, as name: String) {
    guard let dictionary = value.dictionaryValue else {
      // The first value of a duplicate key counts, as in `PropertyDictionary`.
      if fields[name] == nil { fields[name] = ["\(value)"] }
      return
    }
    for entry in dictionary.entries where entry.key != .string("BackupKeyBag") {
      add(entry.value, as: "\(name) \(entry.key.stringValue ?? "?")")
    }
  }

  private mutating func add(_ keybag: Keybag) {
    func add(_ records: [Keybag.Record], _ section: String) {
      for record in records {
        fields["keybag \(section) \(record.tag)", default: []].append(String(hexadecimal: record.value))
      }
    }
    add(keybag.header, "header")
    for key in keybag.classKeys { add(key.records, "class") }
  }

  private mutating func add(_ file: ListedFile) throws(KeyhaulError) {
    func add(_ name: String, _ value: Any?) {
      fields["Manifest.db \(name)", default: []].append(value.map { "\($0)" } ?? "none")
    }
    add("identifier", file.fileIdentifier)
    add("domain", file.domain)
    add("row's path", file.relativePath)
    add("kind", file.kind)
    guard let record = try file.record() else { return }
    add("path", record.relativePath)
    add("target", record.target)
    add("digest", record.digest)
    add("key", record.encryptionKey?.serialized())
    add("type", record.mode & 0o170000)
    add("permissions", record.mode & 0o7777)
    add("inode", record.inode)
    add("owner", [record.userID, record.groupID])
    add("times", [record.lastModified, record.lastStatusChange, record.birth])
    add("size", record.size)
    add("class", record.protectionClass)
    add("attributes", record.extendedAttributes)
    add("flags", record.flags)
  }
}
