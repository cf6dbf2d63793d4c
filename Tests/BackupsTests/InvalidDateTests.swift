import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Backups with invalid dates")
struct InvalidDateTests {
  /// Seconds since 1970. Some exceed a 64-bit integer. The year of 7e16 seconds exceeds a 32-bit integer.
  static let dates = [7e16, -7e16, 9.3e18, -9.3e18, 1e300, -1e300, .infinity, -.infinity, .nan, 1e10, -1]

  private func dated(_ seconds: Double) throws -> [(path: String, bytes: [UInt8])] {
    var files = try SampleBackup().storedFiles()
    for name in ["Manifest.plist", "Status.plist"] {
      var root = try propertyList(name, in: files)
      root["Date"] = .date(KeychainDate(secondsSince1970: seconds))
      files[name] = try BinaryPlist.encode(.dictionary(root))
    }
    return files
  }

  @Test(
    "A backup with an invalid date can be converted to any format", arguments: dates,
    ["c/", "c.tar", "c.tar.gz", "c.tar.zst", "c.zip"])
  func converted(seconds: Double, destination: String) throws {
    let directory = try TemporaryDirectory()
    try directory.write(packed(try dated(seconds)), to: "b.tar")
    let archive = try BackupArchive.open(.path(directory.path("b.tar")))
    _ = try BackupRewriter(system: unsynced).convert(
      archive, at: directory.path("b.tar"), to: BackupDestination(path: directory.path(destination)))
    #expect(try BackupArchive.open(.path(directory.path(destination))).digest == archive.digest)
  }

  @Test(
    "An entry keeps the closest date that its format supports when the password changes",
    arguments: [
      (70_000_000_000_000_000, 0o77_777_777_777), (-70_000_000_000_000_000, 0), (Int64.max, 0o77_777_777_777),
      (Int64.min, 0), (-1, 0), (1_795_197_850, 1_795_197_850),
    ] as [(Int64, Int64)])
  func entries(seconds: Int64, expected: Int64) throws {
    let directory = try TemporaryDirectory()
    var tar = TarFixture()
    for file in try SampleBackup().storedFiles() {
      tar.addExtended([("mtime", Array("\(seconds)".utf8))])
      tar.add(file.path, file.bytes)
    }
    try directory.write(tar.finished(), to: "b.tar")
    let archive = try BackupArchive.open(.path(directory.path("b.tar")))
    let keybag = try BackupKeybag.rewrap(
      archive.keybag, from: Secret(utf8: SampleBackup.password), to: Secret(utf8: "battery staple"))
    try BackupRewriter(system: unsynced).replaceKeybag(of: archive, at: directory.path("b.tar"), with: keybag)
    let written = try directory.read("b.tar")
    // POSIX: the time is in 11 octal digits at offset 136 of a header. For times with more than 31 bits, libarchive
    // also writes an extended header before it.
    let field = String(decoding: written[136..<147], as: UTF8.self)
    if expected > Int32.max {
      #expect(!Data(written).ranges(of: Data(" mtime=\(expected)\n".utf8)).isEmpty)
    } else {
      #expect(Int64(field, radix: 8) == expected)
    }
    #expect(try BackupArchive.open(.path(directory.path("b.tar"))).keybag == keybag)
  }
}
