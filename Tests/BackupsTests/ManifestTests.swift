import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Manifests of backups")
struct ManifestTests {
  private func failure(_ files: [(path: String, bytes: [UInt8])]) throws -> KeyhaulError? {
    try BackupsTests.failure(opening: packed(files))
  }

  /// Decodes a binary property list among a backup's files.
  private func dictionary(
    _ files: [(path: String, bytes: [UInt8])], _ path: String
  ) throws -> PropertyDictionary {
    let bytes = try #require(files[path])
    return try #require(try BinaryPlist.decode(bytes).dictionaryValue)
  }

  /// Returns the sample's files with a changed property list.
  private func files(
    _ path: String, _ change: (inout PropertyDictionary) -> Void
  ) throws -> [(path: String, bytes: [UInt8])] {
    var files = try SampleBackup().storedFiles()
    var root = try dictionary(files, path)
    change(&root)
    files[path] = try BinaryPlist.encode(.dictionary(root))
    return files
  }

  @Test("A manifest is written with the keys of a device")
  func keys() throws {
    let files = try SampleBackup().storedFiles()
    let root = try dictionary(files, "Manifest.plist")
    let names = root.entries.compactMap(\.key.stringValue).sorted()
    #expect(
      names == [
        "Applications", "BackupKeyBag", "Date", "IsEncrypted", "Lockdown", "ManifestKey", "SystemDomainsVersion",
        "Version", "WasPasscodeSet",
      ])
    #expect(root["Version"] == .string("10.0"))
    // The class in four bytes, and a wrapped key of forty bytes.
    #expect(root["ManifestKey"]?.dataValue?.prefix(4) == [3, 0, 0, 0])
    #expect(root["ManifestKey"]?.dataValue?.count == 44)
    let info = String(decoding: try #require(files["Info.plist"]), as: UTF8.self)
    #expect(info.contains("<key>Unique Identifier</key>"))
    #expect(info.contains(SampleBackup.udid))
    #expect(info.contains("2026-11-20T18:04:10Z"))
  }

  @Test("The manifest of a backup without a password has a keybag but no key for the manifest database")
  func withoutPassword() throws {
    let files = try SampleBackup(hasPassword: false).storedFiles()
    let root = try dictionary(files, "Manifest.plist")
    #expect(root["ManifestKey"] == nil)
    #expect(root["BackupKeyBag"] != nil)
    #expect(root["IsEncrypted"] == .boolean(false))
  }

  @Test("Unknown keys are preserved when a manifest is rewritten")
  func unknownKeys() throws {
    let changedFiles = try files("Manifest.plist") { root in
      root["AppleIDs"] = .dictionary(["someone": .string("else")])
      var lockdown = root["Lockdown"]?.dictionaryValue ?? [:]
      lockdown["com.apple.Accessibility"] = .dictionary(["VoiceOver": .boolean(true)])
      root["Lockdown"] = .dictionary(lockdown)
    }
    let bytes = try #require(changedFiles["Manifest.plist"])
    let reparsed = try BackupManifest(parsing: try BackupManifest(parsing: bytes).serialized())
    #expect(reparsed.others["AppleIDs"] == .dictionary(["someone": .string("else")]))
    let lockdown = try #require(reparsed.others["Lockdown"]?.dictionaryValue)
    #expect(lockdown["com.apple.Accessibility"] == .dictionary(["VoiceOver": .boolean(true)]))
    #expect(reparsed.device.name == "old-phone")
  }

  @Test(
    "A backup without a usable version or keybag can be opened but not restored",
    arguments: ["BackupKeyBag", "Version"])
  func missingKeys(key: String) throws {
    let kind: BackupFinding.Kind = key == "Version" ? .versionMissing : .keybagUnusable
    for value in [nil, PropertyValue.array([])] {
      let archive = try open(packed(try files("Manifest.plist") { $0[key] = value }))
      #expect(archive.findings.map(\.kind) == [kind])
      #expect(archive.findings.map(\.file) == ["Manifest.plist"])
      try archive.requireUsable(for: .reading)
      try archive.requireUsable(for: .planning)
      for use in [BackupPurpose.restoring, .rewriting] {
        let error = #expect(throws: KeyhaulError.self) { try archive.requireUsable(for: use) }
        #expect(error?.code == .damaged)
      }
    }
  }

  @Test("A keybag with more class keys than on any device is refused")
  func hostileKeybag() throws {
    // The first UUID record is the keybag's own. Each of the others begins a class key.
    let classKey = Array("UUID".utf8) + [0, 0, 0, 0]
    let keybag = (0...Keybag.maximumClassKeyCount + 1).flatMap { _ in classKey }
    #expect(try failure(try files("Manifest.plist") { $0["BackupKeyBag"] = .data(keybag) })?.code == .overLimit)
  }

  @Test("A backup whose status has no state can be opened but not restored")
  func missingState() throws {
    let archive = try open(packed(try files("Status.plist") { $0["SnapshotState"] = nil }))
    #expect(archive.findings == [.stateMissing])
    try archive.requireUsable(for: .planning)
    try archive.requireUsable(for: .rewriting)
    let error = #expect(throws: KeyhaulError.self) { try archive.requireUsable(for: .restoring) }
    #expect(error?.reason == "Status.plist: it does not say whether the backup was finished")
  }

  @Test("Without IsEncrypted, the key of the manifest database determines the encryption, with a note")
  func encryptionNotStated() throws {
    let encrypted = try open(packed(try files("Manifest.plist") { $0["IsEncrypted"] = nil }))
    #expect(encrypted.isEncrypted)
    #expect(encrypted.anomalies == [.encryptionNotStated])
    let plain = try open(
      packed(
        try files("Manifest.plist") { root in
          root["IsEncrypted"] = nil
          root["ManifestKey"] = nil
        }))
    #expect(!plain.isEncrypted)
    #expect(try failure(try files("Manifest.plist") { $0["IsEncrypted"] = .array([]) })?.code == .damaged)
  }

  @Test("A backup of a newer version is unsupported")
  func newerVersion() throws {
    #expect(try failure(try files("Manifest.plist") { $0["Version"] = .string("11.0") })?.code == .unsupported)
  }

  @Test("A backup without a manifest database is incomplete")
  func withoutManifestDatabase() throws {
    var files = try SampleBackup().storedFiles()
    files["Manifest.db"] = nil
    #expect(try failure(files)?.code == .payloadMissing)
  }

  @Test("XML property lists are read like binary ones")
  func xml() throws {
    var files = try SampleBackup().storedFiles()
    let root = try dictionary(files, "Manifest.plist")
    files["Manifest.plist"] = try XMLPlist.encode(.dictionary(root))
    files["Status.plist"] = try XMLPlist.encode(.dictionary(try dictionary(files, "Status.plist")))
    let archive = try open(packed(files))
    #expect(archive.device.name == "old-phone")
    #expect(archive.keybag == (try open(packed(try SampleBackup().storedFiles()))).keybag)
  }

  @Test("Info.plist adds the values of the device that are missing in the manifest")
  func deviceFromInfo() throws {
    var files = try files("Manifest.plist") { $0["Lockdown"] = nil }
    #expect(try open(packed(files)).device.identifier == SampleBackup.udid)
    files["Info.plist"] = nil
    #expect(try open(packed(files)).device == BackupDevice())
    files["Info.plist"] = [1]
    #expect(try open(packed(files)).device == BackupDevice())
  }

  @Test(
    "An interrupted backup can be read, with a note, but not restored",
    arguments: ["uploading", "moving", "removing"])
  func unfinished(state: String) throws {
    let archive = try open(packed(try files("Status.plist") { $0["SnapshotState"] = .string(state) }))
    #expect(archive.anomalies == [.unfinished(state: state)])
    let error = try #require(throws: KeyhaulError.self) { try archive.requireFinished() }
    #expect(error.code == .unfinished)
    #expect(
      error.reason == "the device never finished the backup: Status.plist says \"\(state)\", not \"finished\"")
    try open(packed(try SampleBackup().storedFiles())).requireFinished()
  }

  @Test("A backup without a status counts as finished, with a note")
  func noStatus() throws {
    var files = try SampleBackup().storedFiles()
    files["Status.plist"] = nil
    #expect(try open(packed(files)).anomalies == [.statusMissing])
  }

  @Test("The digest of a backup matches its definition, computed separately")
  func digest() throws {
    let files = try SampleBackup().storedFiles()
    var lines = ""
    for path in ["51/\(KeychainPayload.fileIdentifier)", "Manifest.db", "Manifest.plist"] {
      let bytes = try #require(files[path])
      lines += "\(path)\0\(bytes.count)\0\(try Digest.sha256(bytes).hex)\n"
    }
    #expect(try open(packed(files)).digest == "sha256:" + (try Digest.sha256(Array(lines.utf8)).hex))
  }

  @Test("The digest of a backup does not include Info.plist")
  func digestWithoutInfo() throws {
    var files = try SampleBackup().storedFiles()
    let digest = try open(packed(files)).digest
    files["Info.plist"] = [1]
    #expect(try open(packed(files)).digest == digest)
  }

  @Test("A backup without a keychain file has no keychain")
  func withoutKeychain() throws {
    var files = try SampleBackup().storedFiles()
    files["51/\(KeychainPayload.fileIdentifier)"] = nil
    #expect(try !open(packed(files)).hasKeychain)
  }
}
