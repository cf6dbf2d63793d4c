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
  private static let partCount = 8

  private let verifier = VerificationTests()

  /// Creates a sealed backup of about 40 kB, mostly in files without a digest.
  private func sealed() throws -> EditableBackup {
    let text = try SeededRandomSource(seed: "every bit").bytes(9_000)
    var undigested = EditableBackup.File("photo.jpg", text)
    undigested.digest = .none
    let backup = try EditableBackup(
      files: [undigested, .init("letter.txt", VerificationTests.text)], items: VerificationTests.items)
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

  /// Returns the bits of a file: all, one for each byte, or a selection.
  private func flips(in byteCount: Int, part: Int) -> [(offset: Int, bit: Int)] {
    let offsets = stride(from: part, to: byteCount, by: Self.partCount)
    if Self.changesAllBits { return offsets.flatMap { offset in (0..<8).map { (offset, $0) } } }
    return Self.selection(of: offsets, part: part).map { ($0, ($0 / Self.partCount) % 8) }
  }

  /// Returns a selection of positions in a file: a few, four times as many without a limit of cases, or all with `make
  /// -C Tests every-bit`. A debug build needs a quarter of an hour for a hundred thousand verifications.
  private static func selection(of offsets: some Sequence<Int>, part: Int) -> [Int] {
    Cases.quickSelection(from: Array(offsets), count: Cases.count(48, quick: 12), seed: UInt64(part))
  }

  /// Changes one bit after another, calls the closure with each changed backup, and restores each file.
  private func forEachFlip(
    of backup: EditableBackup, part: Int, _ body: (_ name: String, _ location: String) throws -> Void
  ) throws {
    for file in try files(of: backup) {
      for (offset, bit) in flips(in: file.bytes.count, part: part) {
        var changed = file.bytes
        changed[offset] ^= 1 << UInt8(bit)
        try backup.write(changed, to: file.name)
        try body(file.name, "\(file.name), byte \(offset), bit \(bit)")
      }
      try backup.write(file.bytes, to: file.name)
    }
  }

  @Test(
    "A change of any bit of a sealed backup is detected (twelve for each file and part in a quick run)",
    arguments: 0..<partCount)
  func sealedBits(part: Int) throws {
    let backup = try sealed()
    #expect(try !isDetected(backup))
    var (count, undetected) = (0, [String]())
    try forEachFlip(of: backup, part: part) { _, location in
      count += 1
      if try !isDetected(backup) { undetected.append(location) }
    }
    #expect(undetected == [], "\(undetected.count) of \(count)")
    #expect(try !isDetected(backup) && count >= 12 * 5)
    if Self.changesAllBits {
      print("every bit, part \(part): \(count) changed, \(undetected.count) undetected with the seal")
    }
  }

  @Test("Most changes of a sealed backup are detected without its password", arguments: 0..<partCount)
  func bitsWithoutPassword(part: Int) throws {
    let backup = try sealed()
    #expect(try !isDetected(backup, withPassword: false))
    var (count, detectedCount) = (0, 0)
    try forEachFlip(of: backup, part: part) { _, _ in
      count += 1
      if try isDetected(backup, withPassword: false) { detectedCount += 1 }
    }
    #expect(count >= 12 * 5 && 10 * detectedCount >= 6 * count, "\(detectedCount) of \(count)")
    if Self.changesAllBits {
      print("every bit, part \(part): \(count) changed, \(detectedCount) detected without the password")
    }
  }

  @Test(
    "A truncated file of a sealed backup is detected (twelve lengths for each file and part in a quick run)",
    arguments: 0..<partCount)
  func sealedLengths(part: Int) throws {
    let backup = try sealed()
    var (count, undetected) = (0, [String]())
    for file in try files(of: backup) {
      let all = Array(stride(from: part, to: file.bytes.count, by: Self.partCount))
      // An empty seal is a truncated one. Without the file, the backup is unsealed.
      for length in Self.changesAllBits ? all : Self.selection(of: all, part: part) {
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
    let backup = try sealed()
    try backup.remove("Keyhaul.seal")
    let photo = try backup.storedPath("HomeDomain/photo.jpg")
    let before = try decryptedItems(backup)
    let fieldsBefore = try BackupFields(of: backup, fileWithoutDigest: photo)
    let verdict = try verifier.verify(backup, knowsPassword: true).verdict
    var (undetected, count) = ([String: Int](), [String: Int]())
    try forEachFlip(of: backup, part: part) { name, location in
      count[name, default: 0] += 1
      guard try !isDetected(backup) else { return }
      undetected[name, default: 0] += 1
      // The change is not detected, and no item is replaced by another. A class whose `WRAP` requires the device
      // decrypts no items.
      let items = try decryptedItems(backup)
      #expect(items.isSubset(of: before), "\(location)")
      let changedFields = try BackupFields(of: backup, fileWithoutDigest: photo).changed(since: fieldsBefore)
      #expect(
        changedFields.isSubset(of: BackupFields.undetected),
        "\(location): \(changedFields.subtracting(BackupFields.undetected))")
      #expect(items == before || changedFields.contains("keybag class WRAP"), "\(location)")
      // A missing state in Status.plist changes the verdict.
      guard changedFields.contains("Status.plist SnapshotState") else { return }
      #expect(try verifier.verify(backup, knowsPassword: true).verdict != verdict, "\(location)")
    }
    // In a file without a digest, only a change in the padding is detected.
    let keychain = try backup.storedPath("\(KeychainPayload.domain)/\(KeychainPayload.relativePath)")
    let letter = try backup.storedPath("HomeDomain/letter.txt")
    #expect(undetected[keychain] == nil && undetected[letter] == nil && (undetected[photo] ?? 0) > 0)
    if Self.changesAllBits {
      for name in undetected.keys.sorted() {
        print(
          "every bit, part \(part): \(name): \(undetected[name] ?? 0) of \(count[name] ?? 0) undetected without a seal")
      }
    }
  }

  @Test("Each kind of undetected change is documented in the format page")
  func kinds() throws {
    let page = URL(filePath: #filePath).appending(path: "../../../../docs/Format.md").standardizedFileURL
    let text = try String(contentsOf: page, encoding: .utf8)
    let table = try #require(text.split(separator: "## What a flipped bit means").last?.split(separator: "## ").first)
    let rows = table.split(separator: "\n")
    for field in BackupFields.undetected {
      let group = BackupFields.documentedRowPrefixes.first { field.hasPrefix("\($0.key) ") }
      let start = try #require(group, "\(field)").value
      let text = rows.filter { $0.hasPrefix("| \(start)") }.joined()
      #expect(text.contains(field.split(separator: " ").last ?? "?"), "\(field)")
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
        return
          "\(item.index) \(ItemDescriptor(decrypted)) \(decrypted.secret?.withBytes { String(hexadecimal: Array($0)) } ?? "")"
      }
      return Set(texts)
    } catch is KeyhaulError {
      return []
    }
  }
}
