import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

@testable import KeyhaulKit

/// Writes tampered backups, like an attacker who knows the password. The attacker can change every byte and encrypt it
/// again, with all keys except those that need the phone's device key.
struct TamperingWriter {
  let setup: TestSetup
  let password: String?

  /// Backs up a phone with changed contents, which are encrypted with the original class keys.
  func backUp(
    _ phone: VirtualDevice, named name: String = "forged", changing edit: (inout BackupContents) throws -> Void
  ) throws -> String {
    let session = try phone.openTestSession()
    defer { session.invalidate() }
    let prepared = try BackupExporter.prepare(session, password: secret(password), rounds: 1)
    return try write(prepared, named: name, changing: edit)
  }

  func write(
    _ prepared: PreparedBackup, named name: String, changing edit: (inout BackupContents) throws -> Void
  ) throws -> String {
    var contents = prepared.contents
    try edit(&contents)
    let (path, destination) = setup.destination(name, .tar)
    _ = try BackupWriter().write(
      contents, keys: prepared.keys, random: SeededRandomSource(seed: name), to: destination, replace: true)
    return path
  }
}

extension TamperingWriter {
  /// Changes the first digit of the manifest's digest in the seal of a backup in a tar archive.
  static func changeSeal(of path: String) throws {
    var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
    let firstLine = Array("keyhaul-seal 1 hmac-sha256\n".utf8)
    let starts = bytes.indices.dropLast(firstLine.count).filter { bytes[$0...].starts(with: firstLine) }
    for start in starts {
      let digit = start + firstLine.count
      bytes[digit] = bytes[digit] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
    }
    try Data(bytes).write(to: URL(filePath: path))
  }
}

extension BackupContents {
  /// Changes the entries of the keychain file.
  mutating func editEntries(_ edit: (inout [KeychainBackupFile.Entry]) throws -> Void) throws {
    var file = try KeychainBackupFile(parsing: keychainFile)
    try edit(&file.entries)
    keychain = SealedKeychain(try file.serialized())
  }
}

extension KeychainBackupFile.Entry {
  /// Returns the entry with a different class number in its blob.
  func withClassNumber(_ keyClass: KeyClass) throws -> KeychainBackupFile.Entry {
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
  /// Returns the record with a different class number.
  func withClass(_ keyClass: KeyClass) -> Keybag.ClassKey {
    Keybag.ClassKey(
      uuid: uuid ?? [], keyClass: keyClass, wrap: wrap ?? [], keyType: keyType ?? .symmetric,
      wrappedKey: wrappedKey ?? [], publicKey: publicKey)
  }
}

/// Changes a property list in a backup's directory.
func editPropertyList(_ path: String, _ edit: (inout PropertyDictionary) throws -> Void) throws {
  let url = URL(fileURLWithPath: path)
  var root = try BinaryPlist.decode(Array(Data(contentsOf: url))).dictionaryValue ?? [:]
  try edit(&root)
  try Data(BinaryPlist.encode(.dictionary(root))).write(to: url)
}
