import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Property lists of backups")
struct PropertyListTests {
  /// Creates a directory with the sample backup in `b`.
  private func sampleDirectory() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    // The changes by the tests would break the seal.
    try FileManager.default.removeItem(at: directory.url("b/Keyhaul.seal"))
    return directory
  }

  private func open(_ directory: TemporaryDirectory, limits: BackupLimits = .standard) throws -> BackupArchive {
    try BackupArchive.open(.path(directory.path("b")), limits: limits)
  }

  /// Creates a sparse file of forty gigabytes.
  private func makeSparse(_ name: String, in directory: TemporaryDirectory) throws {
    let url = directory.url("b/\(name)")
    try Data().write(to: url)
    let handle = try FileHandle(forWritingTo: url)
    try handle.truncate(atOffset: 40 << 30)
    try handle.close()
  }

  @Test(
    "An optional property list that claims forty gigabytes is skipped with a finding",
    arguments: [MetadataFile.status, .info]
  )
  func sparseOptionalFile(file: MetadataFile) throws {
    let directory = try sampleDirectory()
    try makeSparse(file.path, in: directory)
    let archive = try open(directory)
    #expect(archive.unreadablePropertyLists.map(\.name) == [file.path])
    #expect(archive.unreadablePropertyLists.first?.error.code == .overLimit)
    #expect(
      archive.anomalies.map(\.description) == [
        "\(file.path) could not be read: \(file.path) has 42,949,672,960 bytes (limit: 67,108,864)"
      ])
    #expect(archive.device.name == "old-phone")
    let entry = try #require(try BackupDirectory.backups(in: directory.path).first)
    #expect(entry.state == (file == .status ? .damaged : .finished))
  }

  @Test(
    "A manifest or keychain that claims forty gigabytes is refused in advance",
    arguments: [MetadataFile.manifest, .database, .keychain])
  func sparseRequiredFile(file: MetadataFile) throws {
    let directory = try sampleDirectory()
    try makeSparse(file.path, in: directory)
    let error = #expect(throws: KeyhaulError.self) { try open(directory) }
    #expect(error?.code == .overLimit && error?.reason.hasPrefix("\(file.path) has 42,949,672,960 bytes") == true)
  }

  @Test("An old manifest that claims forty gigabytes is refused in advance")
  func sparseOldManifest() throws {
    let directory = try sampleDirectory()
    try FileManager.default.removeItem(at: directory.url("b/Manifest.db"))
    try makeSparse("Manifest.mbdb", in: directory)
    let error = #expect(throws: KeyhaulError.self) { try open(directory) }
    #expect(error?.code == .overLimit)
  }

  @Test(
    "A property list in a directory is read up to the limit and skipped above it",
    arguments: [MetadataFile.status, .info])
  func limit(file: MetadataFile) throws {
    let directory = try sampleDirectory()
    let text = try XMLPlist.encode(
      .dictionary(["SnapshotState": .string("finished"), "Product Version": .string("18.1")]))
    let padded = text + [UInt8](repeating: UInt8(ascii: "\n"), count: 20_000)
    try directory.write(padded, to: "b/\(file.path)")
    var limits = BackupLimits()
    limits.propertyListByteCount = padded.count
    #expect(try open(directory, limits: limits).anomalies == [])
    limits.propertyListByteCount -= 1
    let archive = try open(directory, limits: limits)
    #expect(archive.anomalies.count == 1)
    #expect(archive.unreadablePropertyLists.map(\.name) == [file.path])
  }

  @Test(
    "A truncated property list is a finding, and the other files are read", arguments: [MetadataFile.status, .info])
  func truncated(file: MetadataFile) throws {
    let directory = try sampleDirectory()
    let complete = try directory.read("b/\(file.path)")
    for count in stride(from: 0, to: complete.count - 1, by: 7) {
      try directory.write(Array(complete[..<count]), to: "b/\(file.path)")
      let archive = try open(directory)
      #expect(archive.unreadablePropertyLists.map(\.name) == [file.path], "\(count)")
      #expect(archive.unreadablePropertyLists.first?.error.code == .damaged, "\(count)")
      #expect(archive.device.identifier == SampleBackup.udid)
      #expect((archive.status == nil) == (file == .status) && (archive.computerProperties == nil) == (file == .info))
    }
  }

  @Test("An unreadable status prevents a restore, but not a plan")
  func unreadableStatus() throws {
    let directory = try sampleDirectory()
    try directory.write(Array("no property list".utf8), to: "b/Status.plist")
    let archive = try open(directory)
    try archive.requireUsable(for: .planning)
    let error = #expect(throws: KeyhaulError.self) { try archive.requireUsable(for: .restoring) }
    #expect(error?.code == .damaged)
    #expect(!archive.anomalies.contains(.statusMissing))
    try directory.write(Array("no property list".utf8), to: "b/Info.plist")
    #expect(try open(directory).unreadablePropertyLists.map(\.name) == ["Status.plist", "Info.plist"])
  }

  @Test("An exponentially expanding list is refused as a manifest, and is a finding as Status.plist or Info.plist")
  func nestedArrays() throws {
    for file in [MetadataFile.status, .info] {
      let directory = try sampleDirectory()
      try directory.write(CostlyPlists.nestedArrays, to: "b/\(file.path)")
      #expect(try open(directory).unreadablePropertyLists.map(\.error.code) == [.overLimit])
    }
    let directory = try sampleDirectory()
    try directory.write(CostlyPlists.nestedArrays, to: "b/Manifest.plist")
    let error = #expect(throws: KeyhaulError.self) { try open(directory) }
    #expect(error?.code == .overLimit)
  }

  // MARK: Info.plist

  /// Creates an Info.plist with the App Store metadata of each app.
  private func infoPlist(_ apps: [(identifier: String, metadata: [UInt8])]) throws -> [UInt8] {
    var applications: PropertyDictionary = [:]
    for app in apps { applications[app.identifier] = .dictionary(["iTunesMetadata": .data(app.metadata)]) }
    return try BinaryPlist.encode(
      .dictionary([
        "Applications": .dictionary(applications),
        "Installed Applications": .array([.string("org.example.a"), .integer(1)]),
        "Device Name": .string("phone"),
      ]))
  }

  @Test("The apps have their App Store names, from XML or binary property lists")
  func apps() throws {
    func metadata(_ name: String) -> PropertyValue { .dictionary(["itemName": .string(name)]) }
    let bytes = try infoPlist([
      ("org.example.a", try XMLPlist.encode(metadata("Ay"))),
      ("org.example.b", try BinaryPlist.encode(metadata("Bee"))),
      ("org.example.c", try BinaryPlist.encode(metadata(""))), ("org.example.d", [1, 2, 3]),
      ("org.example.e", CostlyPlists.nestedArrays),
    ])
    let info = try InfoPlist(parsing: bytes)
    #expect(info.installedApps == ["org.example.a"] && info.device.name == "phone")
    #expect(info.storeNames == ["org.example.a": "Ay", "org.example.b": "Bee"])
    #expect(try InfoPlist(parsing: try XMLPlist.encode(.dictionary([:]))).storeNames == [:])
  }

  @Test("An Info.plist that is not a property list with a dictionary is refused")
  func invalidInfo() {
    for text in ["no property list", "", "<plist><array/></plist>"] {
      #expect(throws: KeyhaulError.self) { try InfoPlist(parsing: Array(text.utf8)) }
    }
  }

  @Test("App Store metadata that apps share is not read more often than would fit into the file")
  func sharedMetadata() throws {
    let metadata = try BinaryPlist.encode(
      .dictionary(["itemName": .string("Bee"), "more": .data([UInt8](repeating: 0, count: 1000))]))
    let apps = (0..<20).map { "app\($0)" }
    let withOwnMetadata = try infoPlist(apps.map { ($0, metadata) })
    #expect(try InfoPlist(parsing: withOwnMetadata).storeNames.count == 20)
    let withSharedMetadata = CostlyPlists.sharedMetadata(apps: 20, metadata: metadata)
    let names = try InfoPlist(parsing: withSharedMetadata).storeNames
    #expect(!names.isEmpty && names.count == withSharedMetadata.count / metadata.count)
  }
}
