import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@testable import Backups

@Suite("Iterating over the items of a backup")
struct BackupItemReaderTests {
  /// The number of items, more than two jobs process at a time.
  private static let itemCount = 5_000
  /// The number of every third item, beginning with the first.
  private static let deviceBoundCount = 1_667
  /// The index of an item that is not device-bound.
  private static let damagedIndex = 1_234

  /// Creates a backup in which every third item is device-bound, and one is damaged.
  private func backup(hasPassword: Bool = true) throws -> EditableBackup {
    try EditableBackup(
      hasPassword: hasPassword,
      items: (0..<Self.itemCount).map { number in
        .password("anna-\(number)", number.isMultiple(of: 3) ? .whenUnlockedThisDeviceOnly : .afterFirstUnlock)
      },
      editEntries: { entries in
        var entries = entries
        let blob = try #require(entries[Self.damagedIndex].blob)
        entries[Self.damagedIndex].blob = blob.dropLast() + [blob[blob.count - 1] ^ 1]
        return entries
      })
  }

  private func key(_ archive: BackupArchive, _ backup: EditableBackup) throws -> BackupKey {
    try archive.unlock(password: backup.hasPassword ? Secret(utf8: EditableBackup.password) : nil)
  }

  /// The device whose key is used.
  enum Hardware: CaseIterable { case none, own, other }

  private func deviceKey(_ hardware: Hardware, _ backup: EditableBackup) throws -> DeviceKey? {
    switch hardware {
    case .none: nil
    case .own: try backup.hardware.deviceKey()
    case .other: try HardwareUID(from: SeededRandomSource(seed: "another phone")).deviceKey()
    }
  }

  private struct ItemResult: Equatable {
    let index: Int
    let account: PropertyValue?
    let reason: Reason?
  }

  @Test(
    "Iterating over items has the same results as opening all of them",
    arguments: [true, false], Hardware.allCases)
  func sameItems(hasPassword: Bool, hardware: Hardware) throws {
    let backup = try backup(hasPassword: hasPassword)
    let archive = try BackupArchive.open(.path(backup.path))
    let key = try key(archive, backup)
    let opened = try archive.open(with: key, deviceKey: try deviceKey(hardware, backup), for: .reading)
    let reader = try archive.reader(with: key, deviceKey: try deviceKey(hardware, backup), for: .reading)
    var items: [BackupItem] = []
    let collect = { (chunk: [BackupItem]) throws(KeyhaulError) in items += chunk }
    try reader.forEachChunk(translating: { $0 }, collect)
    let results = items.map { ItemResult(index: $0.index, account: $0.item?[.account], reason: reader.reason(of: $0)) }
    let expected = opened.items.map { item in
      ItemResult(index: item.index, account: item.item?[.account], reason: opened.reason(of: item))
    }
    #expect(results == expected)
    #expect(results.map(\.index) == Array(0..<Self.itemCount))
    #expect(reader.hardware == opened.hardware && reader.anomalies == opened.anomalies)
    let decryptedCount = results.count { $0.reason == nil }
    let damagedCount = 1
    switch (hasPassword, hardware) {
    case (_, .own): #expect(decryptedCount == Self.itemCount - damagedCount)
    case (true, _): #expect(decryptedCount == Self.itemCount - damagedCount - Self.deviceBoundCount)
    case (false, _): #expect(decryptedCount == 0)
    }
  }

  private struct StopRequest: Error {}

  @Test("An error of the caller stops the iteration")
  func stopped() throws {
    let backup = try backup()
    let archive = try BackupArchive.open(.path(backup.path))
    let reader = try archive.reader(with: try key(archive, backup), for: .exporting)
    var chunks: [[Int]] = []
    #expect(throws: StopRequest.self) {
      let collect = { (chunk: [BackupItem]) throws(StopRequest) in
        chunks.append(chunk.map(\.index))
        if chunks.count == 2 { throw StopRequest() }
      }
      try reader.forEachChunk(translating: { _ in StopRequest() }, collect)
    }
    #expect(chunks == [Array(0..<256), Array(256..<512)])
  }
}
