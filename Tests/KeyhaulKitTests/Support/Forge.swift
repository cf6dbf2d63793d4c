import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

@testable import KeyhaulKit

/// A backup as someone has it who knows its password, or that there is none: every byte can be changed and everything
/// encrypted again, with all keys but those that need the hardware of the phone.
struct Forge {
  let desk: Desk
  let password: String?

  /// Backs up and lets everything but the keys be changed before it is written.
  func backUp(
    _ phone: VirtualDevice, named name: String = "forged", changing edit: (inout BackupContents) throws -> Void
  ) throws -> String {
    let session = try phone.held()
    defer { session.invalidate() }
    let prepared = try BackupExporter.prepare(session, password: secret(password), rounds: 1)
    return try write(prepared, named: name, changing: edit)
  }

  func write(
    _ prepared: PreparedBackup, named name: String, changing edit: (inout BackupContents) throws -> Void
  ) throws -> String {
    var contents = prepared.contents
    try edit(&contents)
    let (path, destination) = desk.destination(name, .tar)
    _ = try BackupWriter().write(
      contents, keys: prepared.keys, random: SeededRandomSource(seed: name), to: destination, replace: true)
    return path
  }
}

extension Forge {
  /// Changes the first digit that the seal of a backup in a tar lists, of its list of files.
  static func changeSeal(of path: String) throws {
    var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
    let head = Array("keyhaul-seal 1 hmac-sha256\n".utf8)
    let starts = bytes.indices.dropLast(head.count).filter { bytes[$0...].starts(with: head) }
    for start in starts { bytes[start + head.count] = bytes[start + head.count] == 48 ? 49 : 48 }
    try Data(bytes).write(to: URL(filePath: path))
  }
}

extension BackupContents {
  /// The keychain file's entries, to change.
  mutating func editEntries(_ edit: (inout [KeychainBackupFile.Entry]) throws -> Void) throws {
    var file = try KeychainBackupFile(parsing: keychainFile)
    try edit(&file.entries)
    keychain = SealedKeychain(try file.serialized())
  }
}

extension KeychainBackupFile.Entry {
  /// The blob with another class number and nothing else changed.
  func claiming(_ keyClass: KeyClass) throws -> KeychainBackupFile.Entry {
    var entry = self
    let old = try ItemBlob(parsing: blob ?? [])
    entry.blob = try ItemBlob(
      version: old.version, hasStaticIV: old.hasStaticIV, keyClass: keyClass, wrappedKey: old.wrappedKey,
      ciphertext: old.ciphertext, tag: old.tag
    ).serialized()
    return entry
  }

  var keyClass: KeyClass? { blob.flatMap { try? ItemBlob(parsing: $0) }?.keyClass }
}

extension Keybag.ClassKey {
  /// The record under another class number.
  func renamed(_ keyClass: KeyClass) -> Keybag.ClassKey {
    Keybag.ClassKey(
      uuid: uuid ?? [], keyClass: keyClass, wrap: wrap ?? [], keyType: keyType ?? .symmetric,
      wrappedKey: wrappedKey ?? [], publicKey: publicKey)
  }
}

/// Changes one property list of a backup's directory.
func editPropertyList(_ path: String, _ edit: (inout PropertyDictionary) throws -> Void) throws {
  let url = URL(fileURLWithPath: path)
  var root = try BinaryPlist.decode(Array(Data(contentsOf: url))).dictionaryValue ?? [:]
  try edit(&root)
  try Data(BinaryPlist.encode(.dictionary(root))).write(to: url)
}
