import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

/// Changes each bit of a small backup, and truncates each file at each length. With a seal, all changes are detected.
/// Without one, the undetected changes are classified.
@Suite("Changes of any bit of a backup")
struct EveryBitTests {
  /// Whether to change all eight bits of each byte instead of one: `make -C Tests every-bit`.
  private static let changesAllBits = ProcessInfo.processInfo.environment["KEYHAUL_EVERY_BIT"] == "1"
  /// The number of test cases among which the bytes of each file are divided.
  private static let partCount = 8

  private let verifier = VerificationTests()

  /// Creates a sealed backup of about 40 kB, mostly in files without a digest.
  private func sealedBackup() throws -> EditableBackup {
    var photo = EditableBackup.File("photo.jpg", try SeededRandomSource(seed: "every bit").bytes(9_000))
    photo.digest = .none
    let backup = try EditableBackup(
      files: [photo, .init("letter.txt", VerificationTests.text)], items: VerificationTests.items)
    let archive = try backup.open()
    _ = try BackupRewriter().seal(
      archive, at: backup.path,
      keys: archive.keybag.unlock(password: Secret(utf8: EditableBackup.password), deviceKey: nil))
    return backup
  }

  private func files(of backup: EditableBackup) throws -> [(name: String, bytes: [UInt8])] {
    try FileManager.default.subpathsOfDirectory(atPath: backup.path).sorted().compactMap { name in
      guard let bytes = try? backup.directory.read("backup/\(name)"), !bytes.isEmpty else { return nil }
      return (name, bytes)
    }
  }

  /// Returns whether a verification, with or without the password, reports a change.
  private func isDetected(_ backup: EditableBackup, withPassword knowsPassword: Bool = true) throws -> Bool {
    do {
      return try verifier.verify(backup, knowsPassword: knowsPassword).verdict == .damaged
    } catch is KeyhaulError {
      return true
    }
  }

  /// Returns the bits of a file that are changed: all bits of the part's bytes, or one bit of each selected byte.
  private func changedBits(in byteCount: Int, part: Int) -> [(offset: Int, bit: Int)] {
    let offsets = stride(from: part, to: byteCount, by: Self.partCount)
    if Self.changesAllBits { return offsets.flatMap { offset in (0..<8).map { (offset, $0) } } }
    return Self.selection(of: offsets, part: part).map { offset in (offset, (offset / Self.partCount) % 8) }
  }

  /// Selects 48 offsets in a file, or 12 in a quick run.
  ///
  /// A debug build needs a quarter of an hour for a hundred thousand verifications.
  private static func selection(of offsets: some Sequence<Int>, part: Int) -> [Int] {
    Cases.quickSelection(from: Array(offsets), count: Cases.count(48, quick: 12), seed: UInt64(part))
  }

  /// Changes one bit after another, calls the closure with each changed backup, and restores each file.
  private func forEachChangedBit(
    of backup: EditableBackup, part: Int, _ body: (_ name: String, _ location: String) throws -> Void
  ) throws {
    for file in try files(of: backup) {
      for (offset, bit) in changedBits(in: file.bytes.count, part: part) {
        try backup.write(file.bytes.flipping(bit: 8 * offset + bit), to: file.name)
        try body(file.name, "\(file.name), byte \(offset), bit \(bit)")
      }
      try backup.write(file.bytes, to: file.name)
    }
  }

  @Test(
    "A change of any bit of a sealed backup is detected (twelve for each file and part in a quick run)",
    arguments: 0..<partCount)
  func sealedBits(part: Int) throws {
    let backup = try sealedBackup()
    #expect(try !isDetected(backup))
    var count = 0
    var undetected: [String] = []
    try forEachChangedBit(of: backup, part: part) { _, location in
      count += 1
      if try !isDetected(backup) { undetected.append(location) }
    }
    #expect(undetected == [], "\(undetected.count) of \(count)")
    // At least twelve bits of each file. The backup has more than five files.
    #expect(try !isDetected(backup) && count >= 12 * 5)
    if Self.changesAllBits {
      print("every bit, part \(part): \(count) changed, \(undetected.count) undetected with the seal")
    }
  }

  @Test("Most changes of a sealed backup are detected without its password", arguments: 0..<partCount)
  func bitsWithoutPassword(part: Int) throws {
    let backup = try sealedBackup()
    #expect(try !isDetected(backup, withPassword: false))
    var (count, detectedCount) = (0, 0)
    try forEachChangedBit(of: backup, part: part) { _, _ in
      count += 1
      if try isDetected(backup, withPassword: false) { detectedCount += 1 }
    }
    // At least 60 % of the changes are detected.
    #expect(count >= 12 * 5 && 10 * detectedCount >= 6 * count, "\(detectedCount) of \(count)")
    if Self.changesAllBits {
      print("every bit, part \(part): \(count) changed, \(detectedCount) detected without the password")
    }
  }

  @Test(
    "A truncated file of a sealed backup is detected (twelve lengths for each file and part in a quick run)",
    arguments: 0..<partCount)
  func sealedLengths(part: Int) throws {
    let backup = try sealedBackup()
    var count = 0
    var undetected: [String] = []
    for file in try files(of: backup) {
      // A length of zero is included: an empty seal is truncated, but without the file, the backup would be unsealed.
      let allLengths = Array(stride(from: part, to: file.bytes.count, by: Self.partCount))
      for length in Self.changesAllBits ? allLengths : Self.selection(of: allLengths, part: part) {
        try backup.write(Array(file.bytes.prefix(length)), to: file.name)
        count += 1
        if try !isDetected(backup) { undetected.append("\(file.name), \(length) bytes") }
      }
      try backup.write(file.bytes, to: file.name)
    }
    #expect(undetected == [], "\(undetected.count) of \(count)")
    if Self.changesAllBits {
      print("every length, part \(part): \(count) cut, \(undetected.count) undetected with the seal")
    }
  }

  @Test("Undetected changes of an unsealed backup are of the kinds in docs/Format.md", arguments: 0..<partCount)
  func unsealedBits(part: Int) throws {
    let backup = try sealedBackup()
    try backup.remove("Keyhaul.seal")
    let photo = try backup.storedPath("HomeDomain/photo.jpg")
    let originalItems = try decryptedItems(backup)
    let originalFields = try BackupFields(of: backup, fileWithoutDigest: photo)
    let originalVerdict = try verifier.verify(backup, knowsPassword: true).verdict
    var changeCounts: [String: Int] = [:]
    var undetectedCounts: [String: Int] = [:]
    try forEachChangedBit(of: backup, part: part) { name, location in
      changeCounts[name, default: 0] += 1
      guard try !isDetected(backup) else { return }
      undetectedCounts[name, default: 0] += 1
      let changedFields = try BackupFields(of: backup, fileWithoutDigest: photo).changed(since: originalFields)
      let undocumentedFields = changedFields.subtracting(BackupFields.undetected)
      #expect(undocumentedFields.isEmpty, "\(location): \(undocumentedFields)")
      // No item is replaced by another. The items of a class are only lost if its changed `WRAP` requires the device
      // key.
      let items = try decryptedItems(backup)
      #expect(items.isSubset(of: originalItems), "\(location)")
      #expect(items == originalItems || changedFields.contains("keybag class WRAP"), "\(location)")
      if changedFields.contains("Status.plist SnapshotState") {
        #expect(try verifier.verify(backup, knowsPassword: true).verdict != originalVerdict, "\(location)")
      }
    }
    // In a file without a digest, only a change in the padding is detected.
    let keychain = try backup.storedPath("\(KeychainPayload.domain)/\(KeychainPayload.relativePath)")
    let letter = try backup.storedPath("HomeDomain/letter.txt")
    #expect(undetectedCounts[keychain] == nil && undetectedCounts[letter] == nil)
    #expect((undetectedCounts[photo] ?? 0) > 0)
    guard Self.changesAllBits else { return }
    for (name, count) in undetectedCounts.sorted(by: { $0.key < $1.key }) {
      print("every bit, part \(part): \(name): \(count) of \(changeCounts[name] ?? 0) undetected without a seal")
    }
  }

  @Test("Each kind of undetected change is documented in the format page")
  func kinds() throws {
    let text = try String(contentsOf: Repository.root.appending(path: "docs/Format.md"), encoding: .utf8)
    let section = try #require(text.split(separator: "## What a flipped bit means").last?.split(separator: "## ").first)
    let lines = section.split(separator: "\n")
    for field in BackupFields.undetected {
      let group = BackupFields.documentedRowPrefixes.first { field.hasPrefix("\($0.key) ") }
      let rowPrefix = "| " + (try #require(group, "\(field)").value)
      let row = lines.filter { $0.hasPrefix(rowPrefix) }.joined()
      let nameInGroup = try #require(field.split(separator: " ").last)
      #expect(row.contains(nameInGroup), "\(field)")
    }
  }

  /// Returns all decrypted items with their secrets.
  private func decryptedItems(_ backup: EditableBackup) throws -> Set<String> {
    do {
      let archive = try backup.open()
      let opened = try archive.open(
        with: archive.unlock(password: Secret(utf8: EditableBackup.password)), for: .reading)
      let texts: [String] = opened.items.compactMap { item in
        guard case .opened(let decrypted) = item.opening else { return nil }
        let secret = decrypted.secret?.withBytes { String(hexadecimal: Array($0)) } ?? ""
        return "\(item.index) \(ItemDescriptor(decrypted)) \(secret)"
      }
      return Set(texts)
    } catch is KeyhaulError {
      return []
    }
  }
}
