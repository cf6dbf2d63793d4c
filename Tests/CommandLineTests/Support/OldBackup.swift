import Foundation
import KeyhaulKit

@testable import keyhaul

/// A backup without a password in the layout of iOS 9. It contains the keychain and two files.
struct OldBackup {
  /// A path with an escape sequence that colors text, and a character that reverses the direction of text.
  static let maliciousName = "Library/\u{1B}[31mred\u{202E}.txt"

  let directory: String
  let sandbox: PhoneSandbox
  /// The size of the keychain file in bytes, with separators as in reports.
  let keychainSize: String
  /// The size of all files in bytes, with separators as in reports.
  let totalSize: String

  /// - Parameters:
  ///   - device: The device that is backed up.
  ///   - domain: The domain of the file `Library/plain.txt`.
  init(
    in sandbox: PhoneSandbox, named directory: String, of device: String = "old-phone", domain: String = "HomeDomain"
  ) throws {
    self.sandbox = sandbox
    self.directory = directory
    try sandbox.succeed("backup \(device) -o \(directory)/ --no-password -q")
    let keychain = try sandbox.read("\(directory)/\(PhoneSandbox.keychainPath)")
    // Both files have five bytes.
    let (plainText, maliciousText) = (Array("plain".utf8), Array("malic".utf8))
    let files: [(domain: String, path: String, bytes: [UInt8])] = [
      ("KeychainDomain", "keychain-backup.plist", keychain), (domain, "Library/plain.txt", plainText),
      ("HomeDomain", Self.maliciousName, maliciousText),
    ]
    var manifest = MBDBRecord.header
    for (domain, path, bytes) in files {
      try sandbox.write(bytes, to: "\(directory)/\(Self.fileName(domain: domain, path: path))")
      manifest += try MBDBRecord.bytes(domain: domain, path: Array(path.utf8), content: bytes)
    }
    try sandbox.write(manifest, to: "\(directory)/Manifest.mbdb")
    for name in ["Manifest.db", PhoneSandbox.keychainPath] {
      try FileManager.default.removeItem(at: sandbox.home.appending(path: "\(directory)/\(name)"))
    }
    keychainSize = HumanReadable.grouped(keychain.count)
    totalSize = HumanReadable.grouped(keychain.count + plainText.count + maliciousText.count)
  }

  /// Adds a row to the manifest, and the payload if the row is a file's.
  ///
  /// - Parameter mode: The `st_mode`: 0o100000 for a file, 0o040000 for a folder, 0o120000 for a link.
  func add(_ path: String, _ bytes: [UInt8] = [], domain: String = "HomeDomain", mode: Int = 0o100644) throws {
    let isFile = mode & 0o170000 == 0o100000
    if isFile { try sandbox.write(bytes, to: "\(directory)/\(Self.fileName(domain: domain, path: path))") }
    let record = try MBDBRecord.bytes(domain: domain, path: Array(path.utf8), content: bytes, mode: mode)
    try sandbox.write(try sandbox.read("\(directory)/Manifest.mbdb") + record, to: "\(directory)/Manifest.mbdb")
  }

  /// Removes the payload of a file in `HomeDomain`, but not its row.
  func removePayload(of path: String) throws {
    let name = try Self.fileName(domain: "HomeDomain", path: path)
    try FileManager.default.removeItem(at: sandbox.home.appending(path: "\(directory)/\(name)"))
  }

  /// Changes the payload of a file in `HomeDomain`, so that it no longer matches its digest.
  func changePayload(of path: String) throws {
    let name = "\(directory)/\(try Self.fileName(domain: "HomeDomain", path: path))"
    var bytes = try sandbox.read(name)
    bytes[0] ^= 1
    try sandbox.write(bytes, to: name)
  }

  private static func fileName(domain: String, path: String) throws -> String {
    try MBDBRecord.fileName(domain: domain, path: Array(path.utf8))
  }
}
