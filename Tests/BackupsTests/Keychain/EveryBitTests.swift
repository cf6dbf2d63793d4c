import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

/// A small backup of which every bit is changed, and every file cut at every length: with its seal none of that goes
/// unseen, and without it what goes unseen is counted.
@Suite("Every bit of a backup")
struct EveryBitTests {
  /// Whether all eight bits of every byte are changed, and not one of each: `make -C Tests every-bit`.
  private static let takesAllBits = ProcessInfo.processInfo.environment["KEYHAUL_EVERY_BIT"] == "1"
  private static let partCount = 8

  private let plain = VerificationTests()

  /// About 40 kB, most of it in files that the list has no digest of.
  private func sealed() throws -> Shelf {
    let text = try SeededRandomSource(seed: "every bit").bytes(9_000)
    var undigested = Shelf.File("photo.jpg", text)
    undigested.digest = .none
    let shelf = try Shelf(
      files: [undigested, .init("letter.txt", VerificationTests.text)], items: VerificationTests.items)
    let archive = try shelf.open()
    _ = try BackupRewriter().seal(
      archive, at: shelf.path, keys: archive.keybag.unlock(password: Secret(utf8: Shelf.password), deviceKey: nil))
    return shelf
  }

  private func files(of shelf: Shelf) throws -> [(name: String, bytes: [UInt8])] {
    try FileManager.default.subpathsOfDirectory(atPath: shelf.path).sorted().compactMap { name in
      guard let bytes = try? shelf.directory.read("backup/\(name)"), !bytes.isEmpty else { return nil }
      return (name, bytes)
    }
  }

  /// Whether somebody who verifies the backup, with its password or quickly without it, is told that something is wrong.
  private func isSeen(_ shelf: Shelf, withPassword knowsPassword: Bool = true) throws -> Bool {
    do {
      return try plain.verify(shelf, knowsPassword: knowsPassword).verdict == .damaged
    } catch is KeyhaulError {
      return true
    }
  }

  /// Every bit of a file, or one bit of every byte, or a few of those.
  private func flips(in byteCount: Int, part: Int) -> [(offset: Int, bit: Int)] {
    let offsets = stride(from: part, to: byteCount, by: Self.partCount)
    if Self.takesAllBits { return offsets.flatMap { offset in (0..<8).map { (offset, $0) } } }
    return Self.some(of: offsets, part: part).map { ($0, ($0 / Self.partCount) % 8) }
  }

  /// A few of a file's places; four times as many where cases are not counted, and all of them by `make -C Tests every-bit` alone:
  /// a hundred thousand verifications take a debug build a quarter of an hour.
  private static func some(of offsets: some Sequence<Int>, part: Int) -> [Int] {
    Cases.part(of: Array(offsets), count: Cases.count(48, quick: 12), seed: UInt64(part))
  }

  /// Writes the backup with one bit changed after the other, and as it was after each file.
  private func forEachFlip(
    of shelf: Shelf, part: Int, _ body: (_ name: String, _ place: String) throws -> Void
  ) throws {
    for file in try files(of: shelf) {
      for (offset, bit) in flips(in: file.bytes.count, part: part) {
        var changed = file.bytes
        changed[offset] ^= 1 << UInt8(bit)
        try shelf.write(changed, to: file.name)
        try body(file.name, "\(file.name), byte \(offset), bit \(bit)")
      }
      try shelf.write(file.bytes, to: file.name)
    }
  }

  @Test("that is sealed: a change of any is seen, in a quick run of twelve a file and part", arguments: 0..<partCount)
  func sealedBits(part: Int) throws {
    let shelf = try sealed()
    #expect(try !isSeen(shelf))
    var (count, unseen) = (0, [String]())
    try forEachFlip(of: shelf, part: part) { _, place in
      count += 1
      if try !isSeen(shelf) { unseen.append(place) }
    }
    #expect(unseen == [], "\(unseen.count) of \(count)")
    #expect(try !isSeen(shelf) && count >= 12 * 5)
    if Self.takesAllBits { print("every bit, part \(part): \(count) changed, \(unseen.count) unseen with the seal") }
  }

  @Test("that is sealed: most changes are seen without its password too", arguments: 0..<partCount)
  func bitsWithoutPassword(part: Int) throws {
    let shelf = try sealed()
    #expect(try !isSeen(shelf, withPassword: false))
    var (count, seenCount) = (0, 0)
    try forEachFlip(of: shelf, part: part) { _, _ in
      count += 1
      if try isSeen(shelf, withPassword: false) { seenCount += 1 }
    }
    #expect(count >= 12 * 5 && 10 * seenCount >= 6 * count, "\(seenCount) of \(count)")
    if Self.takesAllBits { print("every bit, part \(part): \(count) changed, \(seenCount) seen without the password") }
  }

  @Test(
    "that is sealed: a file cut at any length is seen, in a quick run of twelve a file and part",
    arguments: 0..<partCount)
  func sealedLengths(part: Int) throws {
    let shelf = try sealed()
    var (count, unseen) = (0, [String]())
    for file in try files(of: shelf) {
      let all = Array(stride(from: part, to: file.bytes.count, by: Self.partCount))
      // An empty seal is one that was cut; only taking the file away makes an unsealed backup of it.
      for length in Self.takesAllBits ? all : Self.some(of: all, part: part) {
        try shelf.write(Array(file.bytes.prefix(length)), to: file.name)
        count += 1
        if try !isSeen(shelf) { unseen.append("\(file.name), \(length) bytes") }
      }
      try shelf.write(file.bytes, to: file.name)
    }
    #expect(unseen == [], "\(unseen.count) of \(count)")
    if Self.takesAllBits { print("every length, part \(part): \(count) cut, \(unseen.count) unseen with the seal") }
  }

  @Test("that has no seal: what goes unseen is of the kinds that docs/Format.md names", arguments: 0..<partCount)
  func unsealedBits(part: Int) throws {
    let shelf = try sealed()
    try shelf.remove("Keyhaul.seal")
    let photo = try shelf.storedPath("HomeDomain/photo.jpg")
    let before = try opened(shelf)
    let meaning = try BackupMeaning(of: shelf, undigested: photo)
    let verdict = try plain.verify(shelf, knowsPassword: true).verdict
    var (unseen, count) = ([String: Int](), [String: Int]())
    try forEachFlip(of: shelf, part: part) { name, place in
      count[name, default: 0] += 1
      guard try !isSeen(shelf) else { return }
      unseen[name, default: 0] += 1
      // Nobody sees it, and no item is another one for it; a class whose `WRAP` says that it needs the device opens none.
      let items = try opened(shelf)
      #expect(items.isSubset(of: before), "\(place)")
      let lost = try BackupMeaning(of: shelf, undigested: photo).lost(of: meaning)
      #expect(lost.isSubset(of: BackupMeaning.unseen), "\(place): \(lost.subtracting(BackupMeaning.unseen))")
      #expect(items == before || lost.contains("keybag class WRAP"), "\(place)")
      // How far the device came is told all the same where it says so no more.
      guard lost.contains("Status.plist SnapshotState") else { return }
      #expect(try plain.verify(shelf, knowsPassword: true).verdict != verdict, "\(place)")
    }
    // A file of which the list has no digest shows a change in the padding at its end alone.
    let keychain = try shelf.storedPath("\(KeychainPayload.domain)/\(KeychainPayload.relativePath)")
    let letter = try shelf.storedPath("HomeDomain/letter.txt")
    #expect(unseen[keychain] == nil && unseen[letter] == nil && (unseen[photo] ?? 0) > 0)
    if Self.takesAllBits {
      for name in unseen.keys.sorted() {
        print("every bit, part \(part): \(name): \(unseen[name] ?? 0) of \(count[name] ?? 0) unseen without a seal")
      }
    }
  }

  @Test("each kind of change that goes unseen without a seal is one that the format's page names")
  func kinds() throws {
    let page = URL(filePath: #filePath).appending(path: "../../../../docs/Format.md").standardizedFileURL
    let text = try String(contentsOf: page, encoding: .utf8)
    let table = try #require(text.split(separator: "## What a flipped bit means").last?.split(separator: "## ").first)
    let rows = table.split(separator: "\n")
    for (row, facts) in BackupMeaning.unseenByFile {
      let start = try #require(BackupMeaning.rows[row])
      let text = rows.filter { $0.hasPrefix("| \(start)") }.joined()
      for fact in facts { #expect(text.contains(fact.split(separator: " ").last ?? "?"), "\(row): \(fact)") }
    }
  }

  /// Every item that opens, with its secret.
  private func opened(_ shelf: Shelf) throws -> Set<String> {
    do {
      let archive = try shelf.open()
      let opened = try archive.open(with: archive.unlock(password: Secret(utf8: Shelf.password)), for: .reading)
      let texts: [String] = opened.items.compactMap { item in
        guard case .opened(let opened) = item.opening else { return nil }
        return
          "\(item.index) \(ItemIdentity(opened)) \(opened.secret?.withBytes { String(hexadecimal: Array($0)) } ?? "")"
      }
      return Set(texts)
    } catch is KeyhaulError {
      return []
    }
  }
}
