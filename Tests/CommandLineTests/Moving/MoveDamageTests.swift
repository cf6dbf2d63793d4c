import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Damaged backups")
struct MoveDamageTests {
  /// The exit codes for a wrong password, for damage and for a refusal. Damage to the keybag looks like a wrong password.
  static let refusals: Set<Int32> = [12, 13, 14]

  @Test(
    "A truncated tar is rejected, and the device stays unchanged (120 positions, 20 in a quick run)",
    arguments: 0..<4)
  func cutTar(part: Int) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "complete.tar")
    let complete = try sandbox.read("complete.tar")
    // After this byte, there is only padding. Without the padding, the tar is still complete.
    let lastByte = try #require(complete.lastIndex { $0 != 0 })
    let deviceBefore = try sandbox.contents(of: "new-phone")
    var random = SeededRandom(seed: UInt64(part) + 1)
    for _ in 0..<Cases.count(30, quick: 5) {
      let count = Int.random(in: 0..<lastByte, using: &random)
      try sandbox.write(Array(complete.prefix(count)), to: "cut.tar")
      let outcome = try sandbox.keyhaul("restore cut.tar --to new-phone --password-file .bp --yes")
      #expect(Self.refusals.contains(outcome.status), "\(count) of \(complete.count) bytes: \(outcome)")
      #expect(outcome.errors.hasPrefix("error: ") && outcome.output.isEmpty)
    }
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }

  @Test("A folder with a truncated file is rejected, and the device stays unchanged (20 positions, 6 in a quick run)")
  func cutDirectory() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.removeSeal("b")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    var random = SeededRandom(seed: 7)
    let files = try sandbox.files(in: "b")
    #expect(files.count == 5)
    for file in files where file != "Info.plist" {
      let complete = try sandbox.read("b/\(file)")
      let randomCounts = (0..<Cases.count(18, quick: 4)).map { _ in
        Int.random(in: 1..<complete.count - 1, using: &random)
      }
      for count in [0, complete.count - 1] + randomCounts {
        try sandbox.write(Array(complete.prefix(count)), to: "b/\(file)")
        let outcome = try sandbox.keyhaul("restore b/ --to new-phone --password-file .bp --yes")
        #expect(Self.refusals.contains(outcome.status), "\(file), \(count) of \(complete.count) bytes: \(outcome)")
      }
      try sandbox.write(complete, to: "b/\(file)")
    }
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
    // A plan does not depend on Info.plist, which the computer writes.
    let intact = PlannedItems(try sandbox.plan("b/"))
    try sandbox.write(Array(try sandbox.read("b/Info.plist").prefix(100)), to: "b/Info.plist")
    #expect(PlannedItems(try sandbox.plan("b/")) == intact)
  }

  @Test("Plan and restore reject an unfinished backup with one message, and inspect reads it with a warning")
  func unfinished() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var status = try sandbox.read("b/Status.plist")
    status.replaceSubrange(
      try #require(status.firstRange(of: Array("finished".utf8))), with: Array("uploaded".utf8))
    try sandbox.write(status, to: "b/Status.plist")
    for line in ["plan b/ --to new-phone", "restore b/ --to new-phone --yes"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(outcome.status == 13 && outcome.errors.hasPrefix("error: b/ was never finished\n"), "\(outcome)")
      #expect(outcome.errors.ranges(of: "the device never finished the backup").count == 1)
    }
    #expect(try sandbox.keyhaul("inspect b/").errors.hasPrefix("warning: b/ was never finished\n"))
  }

  @Test("The error for a truncated keybag states at which byte the keybag ends")
  func cutKeybag() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var manifest = try sandbox.read("b/Manifest.plist")
    // The last byte before the value belongs to its length. The length is now one byte more than the keybag has.
    let lastField = try #require(KeybagFields.all(in: manifest).last)
    manifest[lastField.range.lowerBound - 1] += 1
    try sandbox.write(manifest, to: "b/Manifest.plist")
    let outcome = try sandbox.keyhaul("inspect b/")
    #expect(outcome.status == 3 && outcome.errors.hasPrefix("warning: b/'s keybag is damaged\n"))
    // The keybag ends after more than 1,000 bytes.
    #expect(outcome.errors.contains("the keybag: it ends at byte 1,"))
    let plan = try sandbox.keyhaul("plan b/ --to new-phone --password-file .bp")
    #expect(plan.status == 13 && plan.errors.contains("the keybag: it ends at byte 1,"))
  }

  @Test("A keychain that names its keybag in capital letters is rejected, and verify reports this")
  func otherCase() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    let path = "b/\(PhoneSandbox.keychainPath)"
    var keychain = try sandbox.read(path)
    let asciiText = String(decoding: keychain.map { $0 < 0x80 ? $0 : UInt8(ascii: " ") }, as: UTF8.self)
    let uuid = try #require(asciiText.firstMatch(of: /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/)).output.0
    let range = try #require(keychain.firstRange(of: Array(uuid.utf8)))
    keychain.replaceSubrange(range, with: Array(uuid.uppercased().utf8))
    try sandbox.write(keychain, to: path)
    let reason = "the two identifiers differ only in case, and no device writes such a pair"
    let plan = try sandbox.devices.run("COLUMNS=120 keyhaul plan b/ --to old-phone")
    #expect(plan.status == 3 && unwrapped(plan.errors).contains(reason))
    let restore = try sandbox.devices.run("COLUMNS=120 keyhaul restore b/ --to old-phone --yes")
    #expect(restore.status == 13 && restore.errors.contains(reason))
    let verified = try sandbox.devices.run("COLUMNS=200 keyhaul verify b/")
    #expect(verified.status == 13)
    #expect(
      verified.output.contains("its keychain does not name the backup's keybag, so it cannot be restored")
        && !verified.output.contains("export saves"))
  }

  @Test("A changed bit in a keybag field has the expected result (65 fields, 20 in a quick run)")
  func keybagFields() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    let intact = PlannedItems(try sandbox.plan("b/"))
    let manifest = try sandbox.read("b/Manifest.plist")
    let fields = KeybagFields.all(in: manifest)
    #expect(fields.count == 10 + 11 * 5)
    var random = SeededRandom(seed: 3)
    for (index, field) in Cases.chosen(Array(fields.enumerated()), quick: 20) {
      // The lowest bit of a number, or any bit of a key, salt or identifier.
      let isNumber = field.range.count == 4
      let offset = isNumber ? field.range.upperBound - 1 : Int.random(in: field.range, using: &random)
      let bit = isNumber ? 0 : Int.random(in: 0..<8, using: &random)
      try sandbox.write(manifest.flipping(bit: offset * 8 + bit), to: "b/Manifest.plist")
      let outcome = try sandbox.keyhaul("plan b/ --to new-phone --password-file .bp --json")
      let details: Comment = "field \(index), \(field.tag): \(outcome)"
      #expect(Self.expectedStatuses(afterChangeOf: field.tag, at: index).contains(outcome.status), details)
      if field.tag == "WPKY" {
        #expect(outcome.errors.contains("no item needs it") == (outcome.status == 0), details)
      }
      guard let plan = try? sandbox.object(outcome.output) else { continue }
      let changed = PlannedItems(plan)
      #expect(changed.migrating.isSubset(of: intact.migrating), details)
      let mayLoseItems = ["CLAS", "WRAP", "KTYP"].contains(field.tag) || outcome.status != 0
      if !mayLoseItems { #expect(changed.migrating == intact.migrating, details) }
    }
  }

  /// Returns the possible exit codes of a plan if a keybag's field has changed.
  ///
  /// The keybag has ten fields of its own, and then five for each class, from class 11 down to class 1.
  private static func expectedStatuses(afterChangeOf tag: String, at index: Int) -> Set<Int32> {
    switch tag {
    case "SALT", "DPSL", "ITER", "DPIC": return [12]
    // Each class also has a UUID, which has no effect.
    case "UUID": return index < 10 ? [3] : [0]
    case "WPKY":
      // Classes 6 to 11 are for items, and the other classes for files. Class 3 is also for the manifest.
      let keyClass = 11 - (index - 10) / 5
      return keyClass == 3 ? [13] : keyClass >= 6 ? [3] : [0]
    case "CLAS", "WRAP", "KTYP": return [0, 3, 12, 13, 14]
    default: return [0]
    }
  }

  @Test("A backup with four billion iterations is rejected before Keyhaul asks for a password")
  func iterations() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.setIterations(.max, in: "DPIC", of: "b")
    for line in ["plan b/ --to new-phone", "restore b/ --to new-phone", "inspect b/ --list"] {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == 14 && outcome.output.isEmpty)
      // 10,000 iterations (`ITER`) are added to the count in `DPIC`.
      #expect(
        outcome.errors == """
          error: refused to open b/
            why: it asks for 4,294,977,295 iterations, over the limit of 20,000,000; a
                 real backup asks for 10,010,000
            try: don't trust this file; --max-rounds raises the limit

          """)
    }
    // Inspect shows the iteration count, because it derives no key for this.
    #expect(try sandbox.keyhaul("inspect b/ --keybag").output.contains("4,294,967,295 + 10,000 iterations, about "))
  }

  @Test(
    "Changed bits make single items unreadable or the backup invalid, and move no other item (30 per file, 8 in a quick run)",
    arguments: 0..<2)
  func flippedBits(part: Int) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.removeSeal("b")
    // Without the source device, the plan cannot decrypt the names of this-device-only items.
    try sandbox.succeed("device delete old-phone --confirm old-phone")
    let intact = PlannedItems(try sandbox.plan("b/"))
    var random = SeededRandom(seed: UInt64(part) + 11)
    for file in try sandbox.files(in: "b") {
      try sandbox.flipBits(Cases.count(15, quick: 4), of: "b/\(file)", using: &random) { offset in
        let outcome = try sandbox.keyhaul("plan b/ --to new-phone --password-file .bp --json")
        let details: Comment = "\(file), byte \(offset): \(outcome.status) \(outcome.errors)"
        #expect([0, 3, 12, 13, 14].contains(outcome.status), details)
        guard let plan = try? sandbox.object(outcome.output) else { return }
        let changed = PlannedItems(plan)
        #expect(changed.migrating.isSubset(of: intact.migrating), details)
        if outcome.status == 0 { #expect(changed == intact, details) }
        if outcome.status == 3, file.contains("/") {
          let unreadable = changed.decisions.filter { $0.value.hasPrefix("unreadable") }
          #expect(unreadable.count <= 2, details)
          // The decisions on all other items stay the same.
          for (index, decision) in changed.decisions where unreadable[index] == nil {
            #expect(decision == intact.decisions[index], details)
          }
        }
      }
    }
  }
}
