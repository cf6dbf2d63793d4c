import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Unconfirmed device keys")
struct UnprovenKeyTests {
  private static let rekey = "rekey b --no-password --password-file .bp"

  /// Creates a backup, the source device's key in `.right` and another key in `.wrong`.
  ///
  /// By default, the backup has one item, which needs no device key.
  private static func sandbox(_ items: String = "--account anna --protection when-unlocked") throws -> PhoneSandbox {
    try PhoneSandbox(named: "an unproven key \(items)") { sandbox in
      try sandbox.succeed("device create solo -q")
      if !items.isEmpty {
        try sandbox.devices.run("printf secret | keyhaul item add solo --service mail \(items) --secret-fd 0 -q")
      }
      try sandbox.backUp("solo", to: "b/")
      try sandbox.write([UInt8](repeating: 7, count: 16), to: ".wrong")
      // Key 0x835: AES under the UID of sixteen bytes 01. Source: iphone-dataprotection, `IOAESAccelerator.c`.
      let chip = Secret(copying: try sandbox.read("devices/solo/hardware.uid"))
      let sealed = try FileCipher.encrypt([UInt8](repeating: 1, count: 16), key: chip)
      try sandbox.write(Array(sealed.prefix(16)), to: ".right")
      // The device folder does not contain the source device.
      try sandbox.devices.run("mkdir elsewhere; mv devices/solo elsewhere/solo")
    }
  }

  @Test("Rekey refuses an unconfirmed device key without a terminal, even with --yes")
  func refused() throws {
    let sandbox = try Self.sandbox()
    let before = try sandbox.devices.run("cd b && find . -type f | sort | xargs sha256sum").output
    for flags in ["--yes", "--no-input", "--yes --dry-run", "--yes --no-input --json"] {
      let outcome = try sandbox.keyhaul("\(Self.rekey) --device-key-file .wrong \(flags)")
      #expect(outcome.status == 14, "\(flags): \(outcome)")
      #expect(unwrapped(outcome.errors).contains("nothing confirms the device key for b"), "\(flags): \(outcome)")
      #expect(outcome.errors.contains("--accept-unproven-key"), "\(flags): \(outcome)")
    }
    #expect(try sandbox.devices.run("cd b && find . -type f | sort | xargs sha256sum").output == before)
    let asked = try sandbox.keyhaul("\(Self.rekey) --device-key-file .wrong --yes", typed: ["n"])
    #expect(asked.status == 1 && asked.errors.contains("the answer was not yes"), "\(asked)")
    #expect(try sandbox.devices.run("cd b && find . -type f | sort | xargs sha256sum").output == before)
  }

  @Test(
    "Rekey does not attribute an accepted wrong key to the phone, and verify says that the right key does not match")
  func accepted() throws {
    let sandbox = try Self.sandbox()
    let done = try sandbox.keyhaul("\(Self.rekey) --device-key-file .wrong --accept-unproven-key")
    #expect(done.status == 0 && !unwrapped(done.output + done.errors).contains("only solo can decrypt"), "\(done)")
    #expect(unwrapped(done.output).contains("No item confirms the device key that was used."), "\(done)")
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
    let home = try sandbox.keyhaul("verify b --home elsewhere")
    #expect(home.errors.contains("the key of solo decrypts none of the items that need one"), "\(home)")
  }

  @Test("Rekey asks for --accept-unproven-key for a backup without items, with and without a new password")
  func withoutItems() throws {
    let sandbox = try Self.sandbox("")
    let refused = try sandbox.keyhaul("\(Self.rekey) --device-key-file .wrong --yes")
    #expect(refused.status == 14 && unwrapped(refused.errors).contains("it has no items"), "\(refused)")
    try sandbox.succeed("\(Self.rekey) --device-key-file .right --accept-unproven-key")
    let back = "rekey b --new-password-file .bp --rounds 1 --device-key-file .wrong"
    #expect(try sandbox.keyhaul("\(back) --yes").status == 14)
    let done = try sandbox.keyhaul("\(back) --accept-unproven-key --json")
    #expect(try done.status == 0 && sandbox.object(done.output)["device_key_proven"] as? Bool == false, "\(done)")
  }

  @Test("A device key that an item confirms needs no flag, and one that does not match is refused even with the flag")
  func proven() throws {
    let sandbox = try Self.sandbox("--account anna --protection when-unlocked-this-device")
    let foreign = try sandbox.keyhaul("\(Self.rekey) --device-key-file .wrong --accept-unproven-key")
    #expect(foreign.status == 14 && foreign.errors.contains("this is not the hardware key"), "\(foreign)")
    let needless = try sandbox.keyhaul(
      "rekey b --password-file .bp --new-password-file .bp --rounds 2 --accept-unproven-key")
    #expect(needless.status == 64, "\(needless)")
    let done = try sandbox.keyhaul("\(Self.rekey) --device-key-file .right --json")
    #expect(try done.status == 0 && sandbox.object(done.output)["device_key_proven"] as? Bool == true, "\(done)")
  }

  @Test("Verify says that it cannot check a device key if no item needs one, and checks it if an item does")
  func verified() throws {
    let sandbox = try Self.sandbox()
    let unproven = try sandbox.keyhaul("verify b --password-file .bp --device-key-file .wrong")
    #expect(unproven.status == 0, "\(unproven)")
    #expect(unwrapped(unproven.output).contains("No item needs a device key, so nothing shows whether"), "\(unproven)")
    let bound = try Self.sandbox("--account anna --protection when-unlocked-this-device")
    let wrong = try bound.keyhaul("verify b --password-file .bp --device-key-file .wrong")
    #expect(wrong.status == 3, "\(wrong)")
    let right = try bound.keyhaul("verify b --password-file .bp --device-key-file .right")
    #expect(right.status == 0 && unwrapped(right.output).contains("b is intact."), "\(right)")
  }
}
