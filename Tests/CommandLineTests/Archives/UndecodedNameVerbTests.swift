import DataProtection
import Foundation
import GRDB
import KeychainFormats
import TestSupport
import Testing

@testable import keyhaul

@Suite("A backup with a file whose name is not UTF-8")
struct UndecodedNameVerbTests {
  private static let name = Array("Library/abc".utf8) + [0xF5, 0xBA] + Array(".dat".utf8)
  private static let finding =
    "1 entry has a name that is not UTF-8, shown with %F5 for the byte F5; it is \"HomeDomain/Library/abc%F5%BA.dat\""
  private static let text = "odd name"

  private func check(_ world: MoveWorld, _ list: String) throws {
    let verified = try world.keyhaul("verify b")
    #expect(verified.status == 0, "\(verified)")
    #expect(flat(verified.output + verified.errors).contains("\(list): \(Self.finding)"), "\(verified)")
    let inspected = try world.keyhaul("inspect b --json")
    #expect(inspected.status == 0 && inspected.output.contains("\"list-names-not-utf8\""), "\(inspected)")
    let exported = try world.keyhaul("export b --files out")
    #expect(exported.status == 0, "\(exported)")
    #expect(flat(exported.errors).contains("abc%F5%BA.dat\", whose bytes are not UTF-8"), "\(exported)")
    #expect(try world.read("out/HomeDomain/Library/abc%F5%BA.dat") == Array(Self.text.utf8))
    let manifest = String(decoding: try world.read("out/keyhaul-files.jsonl"), as: UTF8.self)
    #expect(manifest.contains("\"relative_path_bytes\":\"\(Self.name.hex)\""), "\(manifest)")
  }

  @Test("Every verb reads the other rows of Manifest.db and the file itself")
  func database() throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o b/ --no-password -q")
    let bytes = Array(Self.text.utf8)
    let identifier = try Digest.sha1(Array("HomeDomain-".utf8) + Self.name).hex
    let record = FileRecord(
      relativePath: "Library/stand-in", mode: 0o100644, size: Int64(bytes.count), protectionClass: .fileNone)
    let database = try DatabaseQueue(path: world.devices.home.appending(path: "b/Manifest.db").path)
    try database.write { connection in
      try connection.execute(
        sql: "INSERT INTO Files VALUES (?, 'HomeDomain', CAST(? AS TEXT), 1, ?)",
        arguments: [identifier, Data(Self.name), Data(try record.archived())])
    }
    try database.close()
    try world.devices.run("mkdir -p b/\(identifier.prefix(2))")
    try world.write(bytes, to: "b/\(identifier.prefix(2))/\(identifier)")
    try check(world, "Manifest.db")
  }

  @Test("Every verb reads the other records of Manifest.mbdb and the file itself")
  func oldList() throws {
    let backup = try FilesBackup(undecoded: (Self.name, Self.text))
    try check(backup.world, "Manifest.mbdb")
    #expect(try backup.world.read("out/HomeDomain/Library/notes.txt") == Array("notes".utf8))
  }
}
