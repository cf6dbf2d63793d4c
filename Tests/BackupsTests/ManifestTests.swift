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
    #expect(root["ManifestKey"]?.dataValue?.prefix(4) == [3, 0, 0, 0])
    #expect(root["ManifestKey"]?.dataValue?.count == 44)
    let info = String(decoding: try #require(files["Info.plist"]), as: UTF8.self)
    #expect(info.contains("<key>Unique Identifier</key>"))
    #expect(info.contains(SampleBackup.udid))
    #expect(info.contains("2026-11-20T18:04:10Z"))
    let plain = try SampleBackup(hasPassword: false).storedFiles()
    let plainRoot = try dictionary(plain, "Manifest.plist")
    #expect(plainRoot["ManifestKey"] == nil)
    #expect(plainRoot["BackupKeyBag"] != nil)
    #expect(plainRoot["IsEncrypted"] == .boolean(false))
  }

  @Test("Unknown keys are preserved when a manifest is rewritten")
  func unknownKeys() throws {
    let changed = try files("Manifest.plist") { root in
      root["AppleIDs"] = .dictionary(["someone": .string("else")])
      var lockdown = root["Lockdown"]?.dictionaryValue ?? [:]
      lockdown["com.apple.Accessibility"] = .dictionary(["VoiceOver": .boolean(true)])
      root["Lockdown"] = .dictionary(lockdown)
    }
    let bytes = try #require(changed["Manifest.plist"])
    let reparsed = try BackupManifest(parsing: try BackupManifest(parsing: bytes).serialized())
    #expect(reparsed.others["AppleIDs"] == .dictionary(["someone": .string("else")]))
    let lockdown = try #require(reparsed.others["Lockdown"]?.dictionaryValue)
    #expect(lockdown["com.apple.Accessibility"] == .dictionary(["VoiceOver": .boolean(true)]))
    #expect(reparsed.device.name == "old-phone")
  }

  @Test(
    "A backup without a version or a keybag can be opened but not restored", arguments: ["BackupKeyBag", "Version"])
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
    let record = Array("UUID".utf8) + [0, 0, 0, 0]
    let bag = (0...Keybag.maximumClassKeyCount + 1).flatMap { _ in record }
    #expect(try failure(try files("Manifest.plist") { $0["BackupKeyBag"] = .data(bag) })?.code == .overLimit)
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

  @Test("A newer version is unsupported, and a backup without a manifest database is incomplete")
  func unsupported() throws {
    #expect(try failure(try self.files("Manifest.plist") { $0["Version"] = .string("11.0") })?.code == .unsupported)
    var files = try SampleBackup().storedFiles()
    files["Manifest.db"] = nil
    #expect(try failure(files)?.code == .payloadMissing)
  }

  @Test("An XML manifest is read like a binary one, and Info.plist adds missing values")
  func xml() throws {
    var files = try SampleBackup().storedFiles()
    let root = try dictionary(files, "Manifest.plist")
    files["Manifest.plist"] = try XMLPlist.encode(.dictionary(root))
    files["Status.plist"] = try XMLPlist.encode(.dictionary(try dictionary(files, "Status.plist")))
    let archive = try open(packed(files))
    #expect(archive.device.name == "old-phone")
    #expect(archive.keybag == (try open(packed(try SampleBackup().storedFiles()))).keybag)
    var nameless = root
    nameless["Lockdown"] = nil
    files["Manifest.plist"] = try XMLPlist.encode(.dictionary(nameless))
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
    let payload = "51/\(KeychainPayload.fileIdentifier)"
    var text: [UInt8] = []
    for path in [payload, "Manifest.db", "Manifest.plist"] {
      let bytes = try #require(files[path])
      text += Array("\(path)\0\(bytes.count)\0\(try Digest.sha256(bytes).hex)\n".utf8)
    }
    #expect(try open(packed(files)).digest == "sha256:" + (try Digest.sha256(text).hex))
    var without = files
    without[payload] = nil
    #expect(try open(packed(without)).hasKeychain == false)
    var other = files
    other["Info.plist"] = [1]
    #expect(try open(packed(other)).digest == (try open(packed(files)).digest))
  }
}
