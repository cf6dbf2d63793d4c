import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@Suite("Changing passwords of backups")
struct RekeyTests {
  private static let faults: [FileSystem.InjectedFault] = [.failure(.noSpace), .failure(.ioError), .short]

  private func rewrapped(_ keybag: Keybag, _ new: String = "battery staple") throws -> Keybag {
    try BackupKeybag.rewrap(keybag, from: Secret(utf8: SampleBackup.password), to: Secret(utf8: new))
  }

  private func replace(_ path: String, system: FileSystem = unsynced) throws {
    let archive = try BackupArchive.open(.path(path))
    try BackupRewriter(system: system).replaceKeybag(
      of: archive, at: path, with: rewrapped(archive.keybag), keys: archive.keybag.keys(SampleBackup.password))
  }

  @Test("Changing the password of a directory changes only the seal and the keybag in Manifest.plist")
  func directory() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    let before = try bytes(in: directory, "b")
    let old = try BackupArchive.open(.path(directory.path("b")), system: .real)
    try replace(directory.path("b"))
    let after = try bytes(in: directory, "b")
    #expect(before.keys == after.keys)
    let changed = ["Manifest.plist", "Keyhaul.seal"]
    for (path, content) in before { #expect((after[path] == content) == !changed.contains(path), "\(path)") }
    let new = try BackupArchive.open(.path(directory.path("b")))
    var manifest = new.manifest
    manifest.keybag = old.keybag
    #expect(try manifest.serialized() == old.manifest.serialized())
    #expect(new.keybag.uuid == old.keybag.uuid && new.keybag.iterations == old.keybag.iterations)
    #expect(new.keybag.secondRound?.rounds == old.keybag.secondRound?.rounds)
    #expect(new.keybag.salt != old.keybag.salt && new.keybag.secondRound?.salt != old.keybag.secondRound?.salt)
    for (left, right) in zip(old.keybag.classKeys, new.keybag.classKeys) {
      #expect(left.keyClass == right.keyClass && left.wrap == right.wrap && left.uuid == right.uuid)
      #expect(left.wrappedKey != right.wrappedKey)
    }
  }

  @Test("The written file keeps its permissions", arguments: ["b/", "b.tar"])
  func permissions(destination: String) throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: BackupDestination(path: directory.path(destination)))
    let file = directory.path(destination == "b/" ? "b/Manifest.plist" : destination)
    for mode in [0o644, 0o440] {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
      let archive = try BackupArchive.open(.path(directory.path(destination)))
      let newKeybag = try BackupKeybag.rewrap(
        archive.keybag, from: Secret(utf8: SampleBackup.password), to: Secret(utf8: SampleBackup.password))
      try BackupRewriter().replaceKeybag(
        of: archive, at: directory.path(destination), with: newKeybag, keys: archive.keybag.keys(SampleBackup.password))
      #expect(try BackupArchive.open(.path(directory.path(destination))).keybag == newKeybag)
      #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == mode)
    }
  }

  @Test("Only the new password opens the backup, with the same keychain")
  func passwords() throws {
    let directory = try TemporaryDirectory()
    let sample = try SampleBackup()
    for destination in ["b/", "b.tar", "b.tar.gz", "b.tar.zst", "b.zip"] {
      let path = directory.path(destination)
      try sample.write(to: BackupDestination(path: path))
      try replace(path)
      let archive = try BackupArchive.open(.path(path))
      let error = #expect(throws: DataProtectionError.self) { _ = try archive.keybag.keys(SampleBackup.password) }
      #expect(error?.code == .wrongPassword)
      let keychain = try archive.keychainFile(with: archive.keybag.keys("battery staple")).bytes
      #expect(try keychain == sample.contents.keychainFile, "\(destination)")
    }
  }

  @Test("The device layer of device-bound classes is unchanged")
  func deviceLayer() throws {
    let fixture = try UnencryptedBackupFixture()
    let keybag = try fixture.keybagWithPassword("one")
    let newKeybag = try BackupKeybag.rewrap(keybag, from: Secret(utf8: "one"), to: Secret(utf8: "two"))
    // A key that was wrapped with a device-bound class of the old keybag opens with the new one and the device key.
    let old = try keybag.unlock(password: Secret(utf8: "one"), deviceKey: fixture.deviceKey)
    let new = try newKeybag.unlock(password: Secret(utf8: "two"), deviceKey: fixture.deviceKey)
    for keyClass in (1...11).map({ KeyClass(rawValue: $0) }) {
      let wrappedKey = try old.wrapFileKey(Secret(utf8: String(repeating: "k", count: 32)), keyClass: keyClass)
      let isSame = try new.unwrapFileKey(wrappedKey).matches(Secret(utf8: String(repeating: "k", count: 32)))
      #expect(isSame, "class \(keyClass.rawValue)")
    }
    let without = try newKeybag.unlock(password: Secret(utf8: "two"), deviceKey: nil)
    for number: UInt32 in [5, 9, 10, 11] {
      #expect(without.availability(of: KeyClass(rawValue: number)) == .deviceBound)
    }
  }

  @Test("An XML manifest stays XML, with all other keys in their order")
  func xml() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    let root = try #require(try BinaryPlist.decode(try directory.read("b/Manifest.plist")).dictionaryValue)
    var longer = root
    longer["Zulu"] = .array([.string("<&>"), .boolean(true)])
    try directory.write(try XMLPlist.encode(.dictionary(longer)), to: "b/Manifest.plist")
    try FileManager.default.removeItem(atPath: directory.path("b/Keyhaul.seal"))
    try replace(directory.path("b"))
    let written = try directory.read("b/Manifest.plist")
    #expect(written.starts(with: "<?xml".utf8))
    var changed = try #require(try XMLPlist.decode(written).dictionaryValue)
    #expect(changed.entries.map(\.key) == longer.entries.map(\.key))
    #expect(changed["BackupKeyBag"] != longer["BackupKeyBag"])
    changed["BackupKeyBag"] = longer["BackupKeyBag"]
    #expect(changed["Zulu"] == longer["Zulu"])
  }

  @Test("All other entries of a container are preserved, with any file extension")
  func entries() throws {
    let directory = try TemporaryDirectory()
    var tar = TarFixture()
    for file in try SampleBackup().storedFiles() { tar.add("./some backup/" + file.path, file.bytes) }
    tar.add("./some backup/note.txt", Array("mine".utf8))
    try directory.write(tar.finished(), to: "b.zip")
    try replace(directory.path("b.zip"))
    let script = """
      import tarfile,sys,hashlib
      for m in tarfile.open(sys.argv[1]): print(m.name, hashlib.sha1(tarfile.open(sys.argv[1]).extractfile(m).read()).hexdigest())
      """
    func listing() throws -> [String] {
      let outcome = try ChildProcess("python3", ["-c", script, directory.path("b.zip")]).run()
      return String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").map(String.init)
    }
    let after = try listing()
    try directory.write(tar.finished(), to: "b.zip")
    let before = try listing()
    #expect(before.count == 6 && after.count == 6)
    for (left, right) in zip(before, after) { #expect((left == right) == !left.contains("Manifest.plist")) }
  }

  @Test("A manifest that has changed meanwhile is not overwritten")
  func changed() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    let archive = try BackupArchive.open(.path(directory.path("b")), system: .real)
    try replace(directory.path("b"))
    let current = try directory.read("b/Manifest.plist")
    let error = #expect(throws: KeyhaulError.self) {
      try BackupRewriter().replaceKeybag(
        of: archive, at: directory.path("b"), with: rewrapped(archive.keybag, "third"),
        keys: archive.keybag.keys(SampleBackup.password))
    }
    #expect(error?.code == .changed)
    #expect(try directory.read("b/Manifest.plist") == current)
    #expect(try tree(directory.path).count == 8)
  }

  @Test(
    "After a failure, the old or the new backup exists, and no other files (a third of the calls in a quick run)",
    arguments: ["b/", "b.tar.gz"], faults)
  func everyCall(destination: String, fault: FileSystem.InjectedFault) throws {
    let sample = try SampleBackup()
    let new = try rewrapped(sample.contents.keybag)
    for call in fault.calls(among: Self.faults) {
      let directory = try TemporaryDirectory()
      try sample.write(to: BackupDestination(path: directory.path(destination)), system: unsynced)
      let before = try tree(directory.path)
      let archive = try BackupArchive.open(.path(directory.path(destination)))
      let failing = SingleFault(at: call, fault)
      let keys = try Optional.some(archive.keybag.keys(SampleBackup.password))
      var failed = false
      do throws(KeyhaulError) {
        try BackupRewriter(system: failing.system).replaceKeybag(
          of: archive, at: directory.path(destination), with: new, keys: keys)
      } catch {
        failed = true
        #expect([.noSpace, .unwritable, .unreadable, .changed].contains(error.code), "call \(call): \(error)")
      }
      let after = try tree(directory.path)
      #expect((after == before) == failed && after.count == before.count, "call \(call)")
      let keybag = try BackupArchive.open(.path(directory.path(destination))).keybag
      #expect(keybag == (failed ? archive.keybag : new), "call \(call)")
      let seal = try BackupArchive.open(.path(directory.path(destination))).seal
      #expect(seal?.violations == [], "call \(call)")
      if failing.callCount < call { break }
    }
  }

  @Test("An interrupted change of the password leaves the old backup")
  func interrupted() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .file(directory.path("b.tar"), .tar))
    let before = try tree(directory.path)
    let archive = try BackupArchive.open(.path(directory.path("b.tar")))
    let error = #expect(throws: KeyhaulError.self) {
      try BackupRewriter().replaceKeybag(
        of: archive, at: directory.path("b.tar"), with: rewrapped(archive.keybag),
        keys: archive.keybag.keys(SampleBackup.password)
      ) { _, _ in false }
    }
    #expect(error?.code == .interrupted)
    #expect(try tree(directory.path) == before)
  }
}
