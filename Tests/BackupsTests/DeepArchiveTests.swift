import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Archives of a folder with backups")
struct DeepArchiveTests {
  private static let prefixes = [
    "MobileSync/Backup/\(SampleBackup.udid)/", "./MobileSync/Backup/\(SampleBackup.udid)/", "a/b/c/d/e/f/g/h/",
  ]

  /// Packs one copy of the sample backup for each prefix in a tar, and in a zip.
  private func packed(in prefixes: [String]) throws -> [[UInt8]] {
    var (tar, zip) = (TarFixture(), ZipFixture())
    for prefix in prefixes {
      for file in try SampleBackup.storedFiles() {
        tar.add(prefix + file.path, file.bytes)
        zip.add(prefix + file.path, file.bytes)
      }
    }
    return [tar.finished(), zip.finished()]
  }

  @Test("A backup is found at any depth of a tar and of a zip", arguments: prefixes)
  func depth(prefix: String) throws {
    let plain = try open(BackupsTests.packed(SampleBackup.storedFiles()))
    for bytes in try packed(in: [prefix]) {
      let archive = try open(bytes)
      #expect(archive.digest == plain.digest)
      #expect(try archive.storedFiles() == plain.storedFiles())
      let key = try archive.unlock(password: Secret(utf8: SampleBackup.password))
      let keys = try key.classKeys(deviceKey: nil)
      #expect(try archive.keychainFile(with: keys).file.entries.count == 1)
    }
  }

  @Test("Payloads with names in capitals are found at any depth")
  func capitals() throws {
    var tar = TarFixture()
    for file in try SampleBackup.storedFiles() {
      let path = file.path.hasPrefix("51/") ? file.path.uppercased() : file.path
      tar.add("MobileSync/Backup/x/" + path, file.bytes)
    }
    let archive = try open(tar.finished())
    #expect(archive.hasKeychain && archive.findings.map(\.kind) == [.payloadsRenamed])
  }

  @Test("The error for an archive of several backups names them and advises unpacking it")
  func several() throws {
    for bytes in try packed(in: ["Backup/one/", "Backup/two/"]) {
      let error = try #require(try failure(opening: bytes))
      #expect(error.category == .refused && error.meaning.summary == "it contains several backups")
      #expect(error.reason == "it contains 2 backups, in \"Backup/one\" and \"Backup/two\"")
      #expect(error.advice.hasPrefix("unpack it") && !error.advice.contains("new backup"))
    }
    let tarOfFive = try packed(in: (1...5).map { "\($0)/" })[0]
    let error = try #require(try failure(opening: tarOfFive))
    #expect(error.reason == "it contains 5 backups, in \"1\", \"2\", \"3\" and 2 other folders")
  }

  @Test("A folder inside a backup's folder is not a second backup")
  func inner() throws {
    for bytes in try packed(in: ["Backup/one/", "Backup/one/old/", "Backup/one/Snapshot/"]) {
      #expect(try open(bytes).device.identifier == SampleBackup.udid)
    }
  }

  @Test("A folder inside one of two backups is not a third backup")
  func innerOfSeveral() throws {
    // In the order of bytes, "one-b" is between "one" and "one/old".
    let tar = try packed(in: ["one/", "one-b/", "one/old/"])[0]
    let error = try #require(try failure(opening: tar))
    #expect(error.reason == "it contains 2 backups, in \"one\" and \"one-b\"")
  }

  @Test("The error for an archive without a backup advises unpacking it")
  func none() throws {
    var tar = TarFixture()
    tar.add("photos/1.txt", [1, 2, 3])
    let error = try #require(try failure(opening: tar.finished()))
    #expect(error.code.rawValue == "not-a-backup" && error.advice.hasPrefix("unpack it"))
  }
}
