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

  /// Returns the files of the sample backup with a date in its property lists.
  private func files(withDate seconds: Double) throws -> [(path: String, bytes: [UInt8])] {
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
    try directory.write(packed(try files(withDate: seconds)), to: "b.tar")
    let archive = try BackupArchive.open(.path(directory.path("b.tar")))
    _ = try BackupRewriter(system: unsynced).convert(
      archive, at: directory.path("b.tar"), to: BackupDestination(path: directory.path(destination)))
    #expect(try BackupArchive.open(.path(directory.path(destination))).digest == archive.digest)
  }

  /// The largest time of an entry in a tar: the field has 11 octal digits.
  private static let latestTime: Int64 = 0o77_777_777_777

  @Test(
    "An entry has the closest date that its format supports after the password changes",
    arguments: [
      (70_000_000_000_000_000, latestTime), (-70_000_000_000_000_000, 0), (Int64.max, latestTime),
      (Int64.min, 0), (-1, 0), (1_795_197_850, 1_795_197_850),
    ] as [(Int64, Int64)])
  func entryDates(seconds: Int64, expected: Int64) throws {
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
    if expected > Int32.max {
      // libarchive writes these times to an extended header.
      #expect(!Data(written).ranges(of: Data(" mtime=\(expected)\n".utf8)).isEmpty)
    } else {
      // POSIX: the header of an entry has the time at offset 136.
      let timeField = String(decoding: written[136..<147], as: UTF8.self)
      #expect(Int64(timeField, radix: 8) == expected)
    }
    #expect(try BackupArchive.open(.path(directory.path("b.tar"))).keybag == keybag)
  }
}
