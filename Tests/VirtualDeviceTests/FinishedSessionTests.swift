import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@testable import VirtualDevice

@Suite("Finishing sessions")
struct FinishedSessionTests {
  private func item(_ account: String) -> KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.service] = .string("test")
    item[.account] = .string(account)
    item.protection = .always
    item.secret = SensitiveBytes(copying: Array(account.utf8))
    return item
  }

  @Test("A session that runs a closure throws an error if its changes cannot be written to the disk")
  func closure() throws {
    let phones = try Phones()
    let device = try phones.create()
    func addTwoItems(_ name: String, _ faults: Faults) throws {
      try device.using(faults.files).withSession(.writing, verb: "test") { (session) throws(KeyhaulError) in
        _ = try session.add(item("first of \(name)"))
        _ = try session.add(item("second of \(name)"))
      }
    }
    let withoutFaults = Faults()
    try addTwoItems("all", withoutFaults)
    let stepCount = withoutFaults.stepCount
    // The last steps write the revision, after both items have been added.
    for stepLimit in [stepCount - 1, stepCount - 2] {
      let errorCode = try code { try addTwoItems("\(stepLimit)", Faults(after: stepLimit)) }
      #expect(errorCode == .deviceIO, "after \(stepLimit) of \(stepCount) steps")
    }
  }

  @Test("A session can write its changes to the disk and remain open")
  func synchronized() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    defer { session.invalidate() }
    try session.add("one", .always)
    try session.add("two", .always)
    let log = DeviceFile.keychain.path(in: device.directory) + "-wal"
    #expect(FileManager.default.fileExists(atPath: log))
    try session.synchronize()
    #expect(!FileManager.default.fileExists(atPath: log))
    let record = try DeviceRecord(
      decoding: Array(Data(contentsOf: URL(filePath: DeviceFile.record.path(in: device.directory)))), of: "phone")
    #expect(record.revision == "r3")
    try session.add("three", .always)
    #expect(try session.itemCount == 3)
  }

  @Test("The device can be opened while the cache closes an unused session")
  func closingOfUnusedSession() async throws {
    let phones = try Phones()
    let device = try phones.create()
    let isUnused = Locked(false)
    let closingBegan = Locked(false)
    let slowFiles = DeviceFiles(
      FileSystem { call in
        guard call == .rename, isUnused.withLock({ $0 }) else { return nil }
        closingBegan.withLock { $0 = true }
        Thread.sleep(forTimeInterval: 0.3)
        return nil
      })
    try device.using(slowFiles).withCachedSession(command: "keychain call", wait: .zero) {
      (session) throws(KeyhaulError) in
      // The session stores the revision of the second change only when it is closed.
      _ = try session.add(item("one"))
      _ = try session.add(item("two"))
      isUnused.withLock { $0 = true }
    }
    let limit = ContinuousClock.now + .seconds(30)
    while !closingBegan.withLock({ $0 }), .now < limit { try await Task.sleep(for: .milliseconds(1)) }
    try #require(closingBegan.withLock { $0 })
    let session = try device.openSession(.reading, verb: "test")
    defer { session.invalidate() }
    #expect(try session.itemCount == 2)
  }

  /// A writing session that ends without `close()` loses only error reports, which no test with a working disk notices.
  /// So this test lists the files that open a session for writing.
  @Test("Only four files open a session for writing, and the files that end these sessions close them")
  func writingSessions() throws {
    let sources = Repository.root.appending(path: "Sources")
    let files = try #require(FileManager.default.enumerator(atPath: sources.path))
    var filesThatOpen: [String] = []
    for case let name as String in files where name.hasSuffix(".swift") {
      let text = try String(contentsOf: sources.appending(path: name), encoding: .utf8)
      let openingLines = text.split(separator: "\n").filter {
        ($0.contains("openSession(") || $0.contains("DeviceSession(self,")) && !$0.contains("func ")
      }
      let opensForWriting = openingLines.contains { !$0.contains("(.reading") }
      if opensForWriting { filesThatOpen.append(name) }
    }
    #expect(
      filesThatOpen.sorted() == [
        "Apple/KeychainServices/Client/KeychainClient.swift",
        "CommandLine/keyhaul/Arguments/Resolving/ResolvedDevice.swift",
        "Library/DeviceServer/Backup2/BackupAndRestore.swift", "Library/VirtualDevice/Sessions/SessionCache.swift",
      ])
    for name in [
      "Apple/KeychainServices/Client/DeviceAccessLock.swift",
      "CommandLine/keyhaul/Arguments/Resolving/ResolvedDevice.swift",
      "Library/DeviceServer/Backup2/BackupAndRestore.swift", "Library/VirtualDevice/Sessions/SessionCache.swift",
    ] {
      #expect(try String(contentsOf: sources.appending(path: name), encoding: .utf8).contains(".close()"))
    }
  }
}
