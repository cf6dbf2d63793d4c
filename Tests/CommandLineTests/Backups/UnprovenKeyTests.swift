import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Unconfirmed device keys")
struct UnprovenKeyTests {
  private static let rekey = "rekey b --no-password --password-file .bp"

  /// Creates a backup, the source device's key in `.right` and another key in `.wrong`.
  ///
  /// - Parameter itemFlags: The flags with which the backup's only item is added; empty for a backup without items. By
  ///   default, the item needs no device key.
  private static func sandbox(
    _ itemFlags: String = "--account anna --protection when-unlocked"
  ) throws -> PhoneSandbox {
    try PhoneSandbox(named: "an unproven key \(itemFlags)") { sandbox in
      try sandbox.succeed("device create solo -q")
      if !itemFlags.isEmpty {
        try sandbox.devices.run("printf secret | keyhaul item add solo --service mail \(itemFlags) --secret-fd 0 -q")
      }
      try sandbox.backUp("solo", to: "b/")
      try sandbox.write([UInt8](repeating: 7, count: 16), to: ".wrong")
      try sandbox.write(sandbox.deviceKey(of: "solo"), to: ".right")
      // The device folder does not contain the source device.
      try sandbox.devices.run("mkdir elsewhere; mv devices/solo elsewhere/solo")
    }
  }

  @Test("Rekey refuses an unconfirmed device key without a terminal, even with --yes")
  func refused() throws {
    let sandbox = try Self.sandbox()
    let contentsBefore = try sandbox.fileContents(in: "b")
    for flags in ["--yes", "--no-input", "--yes --dry-run", "--yes --no-input --json"] {
      let outcome = try sandbox.keyhaul("\(Self.rekey) --device-key-file .wrong \(flags)")
      #expect(outcome.status == 14, "\(flags): \(outcome)")
      #expect(unwrapped(outcome.errors).contains("nothing confirms the device key for b"), "\(flags): \(outcome)")
      #expect(outcome.errors.contains("--accept-unproven-key"), "\(flags): \(outcome)")
    }
    #expect(try sandbox.fileContents(in: "b") == contentsBefore)
    let asked = try sandbox.keyhaul("\(Self.rekey) --device-key-file .wrong --yes", typed: ["n"])
    #expect(asked.status == 1 && asked.errors.contains("the answer was not yes"), "\(asked)")
    #expect(try sandbox.fileContents(in: "b") == contentsBefore)
  }

  @Test(
    "After a rekey with an accepted wrong key, only that key matches, and no message says that the phone's key does")
  func accepted() throws {
    let sandbox = try Self.sandbox()
    let rekeyed = try sandbox.keyhaul("\(Self.rekey) --device-key-file .wrong --accept-unproven-key")
    #expect(rekeyed.status == 0, "\(rekeyed)")
    #expect(!unwrapped(rekeyed.output + rekeyed.errors).contains("only solo can decrypt"), "\(rekeyed)")
    #expect(unwrapped(rekeyed.output).contains("No item confirms the device key that was used."), "\(rekeyed)")
    let verified = try sandbox.keyhaul("verify b --device-key-file .right")
    #expect(verified.status == 3, "\(verified)")
    #expect(unwrapped(verified.output).contains("The given device key decrypts none of the items that need one."))
    let document = try sandbox.object(sandbox.keyhaul("verify b --device-key-file .right --json").output)
    #expect(document["device_key"] as? String == "foreign")
    // The wrong key matches, because the backup was rewritten with it.
    let matching = try sandbox.keyhaul("verify b --device-key-file .wrong --json")
    #expect(matching.status == 0, "\(matching)")
    #expect(try sandbox.object(matching.output)["device_key"] as? String == "proven")
    // Without a key, verify does not say which device's key the item needs.
    let withoutKey = try sandbox.keyhaul("verify b")
    #expect(!unwrapped(withoutKey.output).contains("can be decrypted only on"), "\(withoutKey)")
    let withDevice = try sandbox.keyhaul("verify b --home elsewhere")
    #expect(withDevice.errors.contains("the key of solo decrypts none of the items that need one"), "\(withDevice)")
  }

  @Test("Rekey asks for --accept-unproven-key for a backup without items, with and without a new password")
  func withoutItems() throws {
    let sandbox = try Self.sandbox("")
    let refused = try sandbox.keyhaul("\(Self.rekey) --device-key-file .wrong --yes")
    #expect(refused.status == 14 && unwrapped(refused.errors).contains("it has no items"), "\(refused)")
    try sandbox.succeed("\(Self.rekey) --device-key-file .right --accept-unproven-key")
    let addPassword = "rekey b --new-password-file .bp --rounds 1 --device-key-file .wrong"
    #expect(try sandbox.keyhaul("\(addPassword) --yes").status == 14)
    let accepted = try sandbox.keyhaul("\(addPassword) --accept-unproven-key --json")
    #expect(accepted.status == 0, "\(accepted)")
    #expect(try sandbox.object(accepted.output)["device_key_proven"] as? Bool == false, "\(accepted)")
  }

  @Test("A device key that an item confirms needs no flag, and a key that does not match is refused even with the flag")
  func proven() throws {
    let sandbox = try Self.sandbox("--account anna --protection when-unlocked-this-device")
    let withWrongKey = try sandbox.keyhaul("\(Self.rekey) --device-key-file .wrong --accept-unproven-key")
    #expect(
      withWrongKey.status == 14 && withWrongKey.errors.contains("this is not the device key"), "\(withWrongKey)")
    // A change of the password uses no device key, so the flag is rejected.
    let withoutKey = try sandbox.keyhaul(
      "rekey b --password-file .bp --new-password-file .bp --rounds 2 --accept-unproven-key")
    #expect(withoutKey.status == 64, "\(withoutKey)")
    let withRightKey = try sandbox.keyhaul("\(Self.rekey) --device-key-file .right --json")
    #expect(withRightKey.status == 0, "\(withRightKey)")
    #expect(try sandbox.object(withRightKey.output)["device_key_proven"] as? Bool == true, "\(withRightKey)")
  }

  @Test("If no item confirms the device key, `item add` and `item update` refuse to write this-device-only items")
  func itemChanges() throws {
    let sandbox = try Self.sandbox()
    try sandbox.write(Array("new secret".utf8), to: ".secret")
    let contentsBefore = try sandbox.fileContents(in: "b")
    let add = "add b --service fresh --account zoe --access-group g --secret-file .secret --password-file .bp"
    let update = "update b --service mail --yes --password-file .bp"
    for key in [".wrong", ".right"] {
      for line in [
        "\(add) --protection when-unlocked-this-device", "\(update) --new-protection when-unlocked-this-device",
      ] {
        let outcome = try sandbox.keyhaul("item \(line) --device-key-file \(key)")
        #expect(outcome.status == 14, "\(line) \(key): \(outcome)")
        #expect(
          unwrapped(outcome.errors).contains("no item of the backup proves that the available one is the source"),
          "\(line) \(key): \(outcome)")
      }
    }
    #expect(try sandbox.fileContents(in: "b") == contentsBefore)
    // Other items need no device key.
    try sandbox.succeed("item \(add) --device-key-file .wrong -q")
    #expect(try sandbox.succeed("item find b --password-file .bp --service fresh --reveal") == "new secret")
  }

  @Test("Verify says that it cannot check a device key if no item needs one, and checks it if an item does")
  func verified() throws {
    let sandbox = try Self.sandbox()
    let unchecked = try sandbox.keyhaul("verify b --password-file .bp --device-key-file .wrong")
    #expect(unchecked.status == 0, "\(unchecked)")
    #expect(
      unwrapped(unchecked.output).contains("No item needs a device key, so nothing shows whether"), "\(unchecked)")
    let deviceBound = try Self.sandbox("--account anna --protection when-unlocked-this-device")
    let withWrongKey = try deviceBound.keyhaul("verify b --password-file .bp --device-key-file .wrong")
    #expect(withWrongKey.status == 3, "\(withWrongKey)")
    let withRightKey = try deviceBound.keyhaul("verify b --password-file .bp --device-key-file .right")
    #expect(withRightKey.status == 0 && unwrapped(withRightKey.output).contains("b is intact."), "\(withRightKey)")
  }
}
