import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

/// A backup in the layout of iOS 9, with the keychain of a backup without a password and two files.
struct OldBackup {
  static let hostileName = "Library/\u{1B}[31mred\u{202E}.txt"

  let directory: String
  let sandbox: PhoneSandbox
  let keychainBytes: String
  let totalBytes: String

  /// - Parameters:
  ///   - device: The device that is backed up.
  ///   - domain: The domain of the file `Library/plain.txt`.
  init(
    in sandbox: PhoneSandbox, named directory: String, of device: String = "old-phone", domain: String = "HomeDomain"
  ) throws {
    self.sandbox = sandbox
    self.directory = directory
    try sandbox.succeed("backup \(device) -o \(directory)/ --no-password -q")
    let payload = try #require(try sandbox.files(in: directory).first { $0.contains("/") })
    let keychain = try sandbox.read("\(directory)/\(payload)")
    let files = [
      ("KeychainDomain", "keychain-backup.plist", keychain), (domain, "Library/plain.txt", Array("plain".utf8)),
      ("HomeDomain", Self.hostileName, Array("hosti".utf8)),
    ]
    var manifest = MBDBRecord.header
    for (domain, path, bytes) in files {
      try sandbox.write(bytes, to: "\(directory)/\(Self.fileName(domain, path))")
      manifest += try MBDBRecord.bytes(domain: domain, path: Array(path.utf8), content: bytes)
    }
    try sandbox.write(manifest, to: "\(directory)/Manifest.mbdb")
    for name in ["Manifest.db", payload] {
      try FileManager.default.removeItem(at: sandbox.home.appending(path: "\(directory)/\(name)"))
    }
    keychainBytes = HumanReadable.grouped(keychain.count)
    totalBytes = HumanReadable.grouped(keychain.count + 10)
  }

  /// Adds a row to the manifest, and the payload if the row is a file's.
  ///
  /// - Parameter mode: The `st_mode`: 0o100000 for a file, 0o040000 for a folder, 0o120000 for a link.
  func add(_ path: String, _ bytes: [UInt8] = [], domain: String = "HomeDomain", mode: Int = 0o100644) throws {
    if mode & 0o170000 == 0o100000 { try sandbox.write(bytes, to: "\(directory)/\(Self.fileName(domain, path))") }
    let record = try MBDBRecord.bytes(domain: domain, path: Array(path.utf8), content: bytes, mode: mode)
    try sandbox.write(try sandbox.read("\(directory)/Manifest.mbdb") + record, to: "\(directory)/Manifest.mbdb")
  }

  func remove(_ path: String) throws {
    let name = try Self.fileName("HomeDomain", path)
    try FileManager.default.removeItem(at: sandbox.home.appending(path: "\(directory)/\(name)"))
  }

  func change(_ path: String) throws {
    let name = "\(directory)/\(try Self.fileName("HomeDomain", path))"
    var bytes = try sandbox.read(name)
    bytes[0] ^= 1
    try sandbox.write(bytes, to: name)
  }

  private static func fileName(_ domain: String, _ path: String) throws -> String {
    try MBDBRecord.fileName(domain: domain, path: Array(path.utf8))
  }
}
