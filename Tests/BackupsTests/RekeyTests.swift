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

  /// Returns the sample's keybag with another password.
  private func rewrapped(_ keybag: Keybag, _ newPassword: String = "battery staple") throws -> Keybag {
    try BackupKeybag.rewrap(keybag, from: Secret(utf8: SampleBackup.password), to: Secret(utf8: newPassword))
  }

  private func changePassword(of path: String, system: FileSystem = unsynced) throws {
    let archive = try BackupArchive.open(.path(path))
    try BackupRewriter(system: system).replaceKeybag(
      of: archive, at: path, with: rewrapped(archive.keybag), keys: archive.keybag.keys(SampleBackup.password))
  }

  @Test("Changing the password of a directory changes only the seal and the keybag in Manifest.plist")
  func directory() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    let oldFiles = try bytes(in: directory, "b")
    let oldArchive = try BackupArchive.open(.path(directory.path("b")), system: .real)
    try changePassword(of: directory.path("b"))
    let newFiles = try bytes(in: directory, "b")
    #expect(oldFiles.keys == newFiles.keys)
    let changedPaths = oldFiles.keys.filter { oldFiles[$0] != newFiles[$0] }
    #expect(changedPaths.sorted() == ["Keyhaul.seal", "Manifest.plist"])
    let newArchive = try BackupArchive.open(.path(directory.path("b")))
    var manifest = newArchive.manifest
    manifest.keybag = oldArchive.keybag
    #expect(try manifest.serialized() == oldArchive.manifest.serialized())
    #expect(
      newArchive.keybag.uuid == oldArchive.keybag.uuid && newArchive.keybag.iterations == oldArchive.keybag.iterations)
    #expect(newArchive.keybag.secondStep?.iterations == oldArchive.keybag.secondStep?.iterations)
    #expect(
      newArchive.keybag.salt != oldArchive.keybag.salt
        && newArchive.keybag.secondStep?.salt != oldArchive.keybag.secondStep?.salt)
    for (oldKey, newKey) in zip(oldArchive.keybag.classKeys, newArchive.keybag.classKeys) {
      #expect(oldKey.keyClass == newKey.keyClass && oldKey.wrap == newKey.wrap && oldKey.uuid == newKey.uuid)
      #expect(oldKey.wrappedKey != newKey.wrappedKey)
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
      try changePassword(of: path)
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
    // With the device key, the new keybag unwraps a key that the old one wrapped.
    let oldKeys = try keybag.unlock(password: Secret(utf8: "one"), deviceKey: fixture.deviceKey)
    let newKeys = try newKeybag.unlock(password: Secret(utf8: "two"), deviceKey: fixture.deviceKey)
    for keyClass in (1...11).map({ KeyClass(rawValue: $0) }) {
      let wrappedKey = try oldKeys.wrapFileKey(Secret(utf8: String(repeating: "k", count: 32)), keyClass: keyClass)
      let isSame = try newKeys.unwrapFileKey(wrappedKey).matches(Secret(utf8: String(repeating: "k", count: 32)))
      #expect(isSame, "class \(keyClass.rawValue)")
    }
    let keysWithoutDevice = try newKeybag.unlock(password: Secret(utf8: "two"), deviceKey: nil)
    for keyClass: UInt32 in [5, 9, 10, 11] {
      #expect(keysWithoutDevice.availability(of: KeyClass(rawValue: keyClass)) == .deviceBound)
    }
  }

  @Test("An XML manifest stays XML, with all other keys in their order")
  func xml() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    var root = try #require(try BinaryPlist.decode(try directory.read("b/Manifest.plist")).dictionaryValue)
    root["Zulu"] = .array([.string("<&>"), .boolean(true)])
    try directory.write(try XMLPlist.encode(.dictionary(root)), to: "b/Manifest.plist")
    try FileManager.default.removeItem(atPath: directory.path("b/Keyhaul.seal"))
    try changePassword(of: directory.path("b"))
    let written = try directory.read("b/Manifest.plist")
    #expect(written.starts(with: "<?xml".utf8))
    let newRoot = try #require(try XMLPlist.decode(written).dictionaryValue)
    #expect(newRoot.entries.map(\.key) == root.entries.map(\.key))
    #expect(newRoot["BackupKeyBag"] != root["BackupKeyBag"])
    #expect(newRoot["Zulu"] == root["Zulu"])
  }

  @Test("All other entries of a container are preserved, even if its file extension belongs to another format")
  func entries() throws {
    let directory = try TemporaryDirectory()
    var tar = TarFixture()
    for file in try SampleBackup().storedFiles() { tar.add("./some backup/" + file.path, file.bytes) }
    tar.add("./some backup/note.txt", Array("mine".utf8))
    try directory.write(tar.finished(), to: "b.zip")
    let linesBefore = try tarListing(directory.path("b.zip"))
    try changePassword(of: directory.path("b.zip"))
    let linesAfter = try tarListing(directory.path("b.zip"))
    #expect(linesBefore.count == 6 && linesAfter.count == 6)
    for (oldLine, newLine) in zip(linesBefore, linesAfter) {
      #expect((oldLine != newLine) == oldLine.contains("Manifest.plist"))
    }
  }

  /// Returns the name and the hash of each entry of a tar, as Python reads it.
  private func tarListing(_ path: String) throws -> [String] {
    let script = """
      import hashlib, sys, tarfile
      tar = tarfile.open(sys.argv[1])
      for member in tar: print(member.name, hashlib.sha1(tar.extractfile(member).read()).hexdigest())
      """
    let outcome = try ChildProcess("python3", ["-c", script, path]).run()
    return String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test("A manifest that has changed since the backup was opened is not overwritten")
  func changed() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    let archive = try BackupArchive.open(.path(directory.path("b")), system: .real)
    try changePassword(of: directory.path("b"))
    let current = try directory.read("b/Manifest.plist")
    let error = #expect(throws: KeyhaulError.self) {
      try BackupRewriter().replaceKeybag(
        of: archive, at: directory.path("b"), with: rewrapped(archive.keybag, "third"),
        keys: archive.keybag.keys(SampleBackup.password))
    }
    #expect(error?.code == .changed)
    #expect(try directory.read("b/Manifest.plist") == current)
    // Six files, and the directories b and b/51.
    #expect(try tree(directory.path).count == 8)
  }

  @Test(
    "If changing the password fails, the backup is unchanged, without new files (a third of the calls in a quick run)",
    arguments: ["b/", "b.tar.gz"], faults)
  func everyCall(destination: String, fault: FileSystem.InjectedFault) throws {
    let sample = try SampleBackup()
    let newKeybag = try rewrapped(sample.contents.keybag)
    for call in fault.calls(among: Self.faults) {
      let directory = try TemporaryDirectory()
      try sample.write(to: BackupDestination(path: directory.path(destination)), system: unsynced)
      let treeBefore = try tree(directory.path)
      let archive = try BackupArchive.open(.path(directory.path(destination)))
      let failing = SingleFault(at: call, fault)
      let keys = try Optional.some(archive.keybag.keys(SampleBackup.password))
      var failed = false
      do throws(KeyhaulError) {
        try BackupRewriter(system: failing.system).replaceKeybag(
          of: archive, at: directory.path(destination), with: newKeybag, keys: keys)
      } catch {
        failed = true
        #expect([.noSpace, .unwritable, .unreadable, .changed].contains(error.code), "call \(call): \(error)")
      }
      let treeAfter = try tree(directory.path)
      #expect((treeAfter == treeBefore) == failed, "call \(call)")
      #expect(treeAfter.count == treeBefore.count, "call \(call)")
      let reopened = try BackupArchive.open(.path(directory.path(destination)))
      #expect(reopened.keybag == (failed ? archive.keybag : newKeybag), "call \(call)")
      #expect(reopened.seal?.violations == [], "call \(call)")
      // The change made fewer calls, so the fault was not injected.
      if failing.callCount < call { break }
    }
  }

  @Test("An interrupted change of the password leaves the old backup")
  func interrupted() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .file(directory.path("b.tar"), .tar))
    let treeBefore = try tree(directory.path)
    let archive = try BackupArchive.open(.path(directory.path("b.tar")))
    let error = #expect(throws: KeyhaulError.self) {
      try BackupRewriter().replaceKeybag(
        of: archive, at: directory.path("b.tar"), with: rewrapped(archive.keybag),
        keys: archive.keybag.keys(SampleBackup.password)
      ) { _, _ in false }
    }
    #expect(error?.code == .interrupted)
    #expect(try tree(directory.path) == treeBefore)
  }
}
