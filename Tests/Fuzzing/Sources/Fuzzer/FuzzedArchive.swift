import ArchivedKeychain
import BackupArchive
import BackupWriting
import DataProtection
import Foundation
import KeychainDumps
import KeychainFormats
import Migration
import VirtualDevice

/// What is read as a whole: backups in one file, single files of one, and documents that people hand each other.
enum FuzzedArchive: String, CaseIterable, FuzzedInput {
  case container
  case manifest
  case manifestDatabase = "manifest-database"
  case seal
  case plan
  case expectations
  case deviceFixture = "device-fixture"
  case dump

  func run(_ bytes: [UInt8]) {
    switch self {
    case .container:
      SampleFolder.shared.write(bytes, to: "one.file")
      verify("one.file")
    case .manifest: verify(bytes, as: "Manifest.plist")
    case .manifestDatabase: verify(bytes, as: "Manifest.db")
    case .seal:
      guard let archive = verify(bytes, as: "Keyhaul.seal") else { return }
      // There is one seal of a backup, and no other that looks right.
      expect(
        archive.seal?.breaks != [] || bytes == SampleFolder.shared.files["Keyhaul.seal"], "a seal that fits is the one")
    case .plan:
      guard let file = try? PlanFile(parsing: bytes) else { return }
      expect(try PlanFile(parsing: PlanFile.bytes(of: file.document)).document == file.document, "a plan is read again")
    case .expectations: _ = try? PlanExpectations(parsing: bytes)
    case .deviceFixture: _ = try? DeviceFixture(decoding: bytes, from: "fuzzed")
    case .dump: _ = try? KeychainDump(parsing: bytes)
    }
  }

  /// Verifies the sample with other bytes in one of its files.
  @discardableResult
  private func verify(_ bytes: [UInt8], as name: String) -> BackupArchive? {
    let folder = SampleFolder.shared
    folder.write(bytes, to: "b/\(name)")
    return verify("b")
  }

  @discardableResult
  private func verify(_ name: String) -> BackupArchive? {
    guard let archive = try? BackupArchive.open(.path(SampleFolder.shared.path(name)), storage: .memory) else {
      return nil
    }
    if let verification = try? BackupVerification(archive, keys: nil) {
      expect(verification.checks.count + verification.unchecked.count > 0, "every check is made, or said not to be")
    }
    return archive
  }

  func examples() throws -> [[UInt8]] {
    let folder = SampleFolder.shared
    return switch self {
    case .container: try ["b.tar", "b.tar.gz", "b.tar.zst", "b.zip"].map(folder.packed)
    case .manifest: [folder.files["Manifest.plist"] ?? []]
    case .manifestDatabase: [folder.files["Manifest.db"] ?? []]
    case .seal: [folder.files["Keyhaul.seal"] ?? []]
    case .plan: [Array(#"{"format": "migration-plan/1"}"#.utf8)]
    case .expectations:
      [Array(#"{"format": "plan-expectations/1", "expect": [{"service": "a", "outcome": "migrates"}]}"#.utf8)]
    case .deviceFixture:
      [Array(#"{"format": "device-fixture/1", "seed": 1, "name": "old-phone", "ios": "18.1", "items": []}"#.utf8)]
    case .dump: [Array(#"[{"acct": "a", "svce": "s", "v_Data": "c2VjcmV0", "class": "genp"}]"#.utf8)]
    }
  }
}

/// A small backup without a password, in a folder in memory that goes with the process.
final class SampleFolder: Sendable {
  static let shared: SampleFolder = {
    do {
      return try SampleFolder()
    } catch {
      fatalError("no sample: \(error)")
    }
  }()

  let files: [String: [UInt8]]
  private let directory: URL

  private init() throws {
    let memory = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
    directory = URL(filePath: memory).appending(path: "keyhaul-fuzzing-\(ProcessInfo.processInfo.processIdentifier)")
    try? FileManager.default.removeItem(at: directory)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let path = directory.path
    try Self.write(to: ArchiveDestination(path: "\(path)/b/"))
    var files: [String: [UInt8]] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: "\(path)/b") {
      if let bytes = FileManager.default.contents(atPath: "\(path)/b/\(name)") { files[name] = Array(bytes) }
    }
    self.files = files
    atexit { try? FileManager.default.removeItem(at: SampleFolder.shared.directory) }
  }

  private static func write(to destination: ArchiveDestination) throws {
    let hardware = try HardwareUID(from: CountedBytes())
    let made = try BackupKeybag.make(
      password: nil, deviceKey: try hardware.deviceKey(), rounds: 1, random: CountedBytes())
    let keybag = made.keybag
    let file = KeychainBackupFile(
      keybagUUID: keybag.uuidText,
      entries: [.init(kind: .genericPassword, blob: [3, 0, 0, 0], persistentReference: nil)])
    let contents = BackupContents(
      device: BackupDevice(
        identifier: "4C1F0A2B-9D3E5F60718293A4", name: "old-phone", productType: "iPhone15,2", productVersion: "18.1",
        buildVersion: "22B83", serialNumber: "F2LXK0AB12"),
      date: KeychainDate(secondsSince1970: 1_795_197_850), keybag: keybag, isEncrypted: false, wasPasscodeSet: true,
      keychainFile: try file.serialized())
    _ = try BackupWriter().write(
      contents, keys: made.takeClassKeys(), random: CountedBytes(), to: destination, replace: true)
  }

  func path(_ name: String) -> String { directory.appending(path: name).path }

  /// Replaces one of the sample's files, or writes one beside the sample; the others stay.
  func write(_ bytes: [UInt8], to name: String) {
    guard FileManager.default.createFile(atPath: path(name), contents: Data(bytes)) else {
      fatalError("no room for \(name)")
    }
  }

  func packed(_ name: String) throws -> [UInt8] {
    try Self.write(to: ArchiveDestination(path: path(name)))
    return Array(FileManager.default.contents(atPath: path(name)) ?? Data())
  }
}
