import Foundation
import Testing

@testable import keyhaul

@Suite("Restores of damaged backups")
struct AcceptDamageTests {
  enum Damage: String, CaseIterable, Sendable {
    case cutKeychain, noStatus

    /// The description of the damage in messages.
    var reason: String {
      switch self {
      case .cutKeychain: "the digest recorded for the keychain file does not match"
      case .noStatus: "there is no Status.plist to show that the backup was finished"
      }
    }

    var verdict: String {
      switch self {
      case .cutKeychain: "is damaged"
      case .noStatus: "may not be complete"
      }
    }

    /// The number of items that remain, out of 18.
    var itemCount: Int {
      switch self {
      case .cutKeychain: 9
      case .noStatus: 18
      }
    }
  }

  /// Returns a sandbox with a damaged backup of old-phone, made without a password. old-phone was erased afterwards.
  private func sandbox(_ damage: Damage) throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    try sandbox.succeed("device erase old-phone --yes -q")
    switch damage {
    case .noStatus: try sandbox.devices.run("rm b/Status.plist b/Keyhaul.seal")
    case .cutKeychain:
      // One of the ten generic passwords remains.
      try sandbox.editPropertyList("b/\(PhoneSandbox.keychainPath)") { keychain in
        let genericPasswords = try #require(keychain["genp"] as? [Any])
        keychain["genp"] = Array(genericPasswords.prefix(1))
      }
    }
    return sandbox
  }

  /// Returns the items of old-phone and its record, as JSON.
  private func state(of sandbox: PhoneSandbox) throws -> String {
    try sandbox.keyhaul("item find old-phone --json").output + sandbox.succeed("device show old-phone --json")
  }

  @Test(
    "Without a terminal, restore rejects a damaged backup and states the damage, and --accept-damage allows the restore",
    arguments: Damage.allCases)
  func unasked(_ damage: Damage) throws {
    let sandbox = try sandbox(damage)
    let stateBefore = try state(of: sandbox)
    let plan = try sandbox.keyhaul("plan b/ --to old-phone")
    #expect(plan.status == 3 && unwrapped(plan.errors).contains(damage.reason), "\(plan)")
    let dryRun = try sandbox.keyhaul("restore b/ --to old-phone -n")
    #expect(dryRun.status == 3 && unwrapped(dryRun.errors).contains(damage.reason), "\(dryRun)")
    // `--yes` does not answer this question.
    for flags in ["", "--yes", "--no-input --yes"] {
      let refused = try sandbox.keyhaul("restore b/ --to old-phone \(flags)")
      #expect(refused.status == 13 && refused.output == "", "\(refused)")
      #expect(refused.errors.contains("error: b/ \(damage.verdict), so nothing was restored to old-phone\n"))
      #expect(unwrapped(refused.errors).contains("why: \(damage.reason)"), "\(refused.errors)")
    }
    #expect(try state(of: sandbox) == stateBefore)
    let restored = try sandbox.keyhaul("restore b/ --to old-phone --accept-damage")
    #expect(
      restored.status == 3 && restored.output == "Restored \(damage.itemCount) items to old-phone in one step.\n")
  }

  @Test("On a terminal, Keyhaul asks about the damage, even with --yes", arguments: Damage.allCases)
  func asked(_ damage: Damage) throws {
    let sandbox = try sandbox(damage)
    let stateBefore = try state(of: sandbox)
    for flags in ["", "--yes"] {
      let stopped = try sandbox.keyhaul("restore b/ --to old-phone \(flags)", typed: ["n"])
      #expect(stopped.status == 1, "\(stopped)")
      #expect(unwrapped(stopped.errors).contains("stopped: the answer was not yes"), "\(stopped)")
      // A short plan precedes the question.
      let terminal = unwrapped(stopped.terminal)
      #expect(terminal.hasPrefix("Plan: b/ → old-phone"), "\(terminal)")
      #expect(terminal.contains(" removed. b/ \(damage.verdict): \(damage.reason)"), "\(terminal)")
      #expect(terminal.hasSuffix("Restore the rest to old-phone? [y/N] n"), "\(terminal)")
    }
    #expect(try state(of: sandbox) == stateBefore)
    let restored = try sandbox.keyhaul("restore b/ --to old-phone", typed: ["y"])
    #expect(
      restored.status == 3 && restored.output == "Restored \(damage.itemCount) items to old-phone in one step.\n")
  }

  @Test("A restore with --only also needs --accept-damage", arguments: Damage.allCases)
  func selectedItems(_ damage: Damage) throws {
    let sandbox = try sandbox(damage)
    let stateBefore = try state(of: sandbox)
    try sandbox.write(Array(#"{"indexes": [0]}"#.utf8), to: "one.json")
    let line = "restore b/ --to old-phone --only one.json --yes"
    let refused = try sandbox.keyhaul(line)
    #expect(
      refused.status == 13 && refused.output == "" && unwrapped(refused.errors).contains(damage.reason), "\(refused)")
    #expect(try state(of: sandbox) == stateBefore)
    let restored = try sandbox.keyhaul("\(line) --accept-damage")
    #expect(restored.status == 3 && restored.output == "Restored 1 item to old-phone in one step.\n", "\(restored)")
  }

  @Test("Items that the backup may have lost are removed only with --existing replace or after a question")
  func onlyCopies() throws {
    let sandbox = try sandbox(.cutKeychain)
    try sandbox.devices.run("printf x | keyhaul item add old-phone --service mine --account me --secret-file - -q")
    let stateBefore = try state(of: sandbox)
    let reason = "the 1 item removed from old-phone may be the only intact copy of an item that is lost in b/"
    let line = "restore b/ --to old-phone --accept-damage"
    let refused = try sandbox.keyhaul("\(line) --yes")
    #expect(
      refused.status == 13 && refused.output == "" && unwrapped(refused.errors).contains("why: \(reason)"), "\(refused)"
    )
    #expect(unwrapped(refused.errors).contains("--existing merge keeps the existing items"))
    let dryRun = try sandbox.keyhaul("\(line) -n")
    #expect(dryRun.status == 3 && unwrapped(dryRun.errors).contains(reason), "\(dryRun)")
    #expect(
      unwrapped(dryRun.output).contains("1 of them may be the only intact copy of an item that is lost in b/."),
      "\(dryRun)")
    let plan = try sandbox.object(try sandbox.keyhaul("plan b/ --to old-phone --json").output)
    #expect(plan["removed_only_copies"] as? Int == 1)
    let stopped = try sandbox.keyhaul(line, typed: ["n"])
    #expect(stopped.status == 1 && unwrapped(stopped.errors).contains(reason), "\(stopped)")
    #expect(try state(of: sandbox) == stateBefore)
    let merged = try sandbox.keyhaul("\(line) --yes --existing merge")
    #expect(merged.status == 3 && !merged.errors.contains("only intact copy"), "\(merged)")
    #expect(try sandbox.succeed("item find old-phone --service mine").contains("me"))
    let replaced = try sandbox.keyhaul("\(line) --yes --existing replace --json")
    #expect(replaced.status == 3 && unwrapped(replaced.errors).contains("the only intact copy"), "\(replaced)")
    #expect(try sandbox.object(replaced.output)["removed_only_copies"] as? Int == 1)
  }

  @Test("A missing class key that items need counts as damage")
  func missingClassKey() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    try sandbox.succeed("device erase old-phone --yes -q")
    let unknownClass: UInt8 = 13
    try sandbox.editKeybagField("CLAS", ofClass: 7, in: "b") { $0[3] = unknownClass }
    let stateBefore = try state(of: sandbox)
    let refused = try sandbox.keyhaul("restore b/ --to old-phone --yes")
    // Five items in the backup are of class 7.
    let reason = "the keybag has no key of class 7, and 5 items need one"
    #expect(refused.status == 13 && unwrapped(refused.errors).contains(reason), "\(refused)")
    #expect(try state(of: sandbox) == stateBefore)
    let restored = try sandbox.keyhaul("restore b/ --to old-phone --yes --accept-damage")
    #expect(restored.status == 3)
    #expect(restored.output == "Restored 13 items to old-phone in one step; 5 could not be read.\n")
  }

  @Test("A damaged class key that no item needs causes only a warning")
  func unusedClassKey() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    // Only files use class 1.
    try sandbox.editKeybagField("WPKY", ofClass: 1, in: "b") { $0[0] ^= 1 }
    for line in ["plan b/ --to new-phone", "restore b/ --to new-phone --yes"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(outcome.status == 0)
      // The first warning is about the low iteration count of 1, which no seal confirms.
      #expect(outcome.errors.hasPrefix("warning: b/ asks for 1 iteration to derive the key from its password"))
      #expect(
        outcome.errors.hasSuffix(
          """
          warning: b/'s keybag is damaged
            why: 10 of 11 class keys can be unwrapped, class 1 cannot; no item needs it
            try: another copy for its files

          """))
    }
    #expect(try sandbox.succeed("item find new-phone --service chat.example").contains("anna"))
  }

  @Test("The warning about two damaged class keys does not speak of a single class")
  func damagedClassKeys() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    // The backup has items of both classes.
    for keyClass: UInt8 in [6, 7] { try sandbox.editKeybagField("WPKY", ofClass: keyClass, in: "b") { $0[0] ^= 1 } }
    let errors = unwrapped(try sandbox.keyhaul("plan b/ --to new-phone --password-file .bp").errors)
    #expect(errors.contains("9 of 11 class keys can be unwrapped, class 6 cannot, class 7 cannot"), "\(errors)")
    #expect(
      errors.contains("another copy; items that need a missing or damaged key are lost in this copy"), "\(errors)")
  }

  @Test("Verify reports a class key without a CLAS field, with and without --quick")
  func missingField() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    var manifest = try sandbox.read("b/Manifest.plist")
    let field = try #require(KeybagFields.all(in: manifest).last { $0.tag == "CLAS" })
    // Before the value, there are four bytes for the tag and four for the length.
    let tagOffset = field.range.lowerBound - 8
    #expect(Array(manifest[tagOffset..<(tagOffset + 4)]) == Array("CLAS".utf8))
    manifest[tagOffset] = UInt8(ascii: "X")
    try sandbox.write(manifest, to: "b/Manifest.plist")
    for line in ["verify b --quick", "verify b --password-file .bp"] {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == 13 && outcome.output.contains("a class key has no CLAS"), "\(line): \(outcome)")
    }
  }
}
