import Foundation
import Testing

@testable import keyhaul

@Suite("Published device keys")
struct PublishedKeyTests {
  /// Returns the number of items in `b.tar` that cannot be decrypted.
  private func undecryptableCount(in sandbox: DeviceSandbox, _ flags: String = "") throws -> Int {
    let document = try sandbox.document("keyhaul inspect b.tar --list --json -q --password-file .bp \(flags)")
    return try #require(document["items"]?.arrayValue).count { $0["readable"] == false }
  }

  @Test("By default, a device with the same name in another folder cannot decrypt this-device-only items")
  func random() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b.tar")
    #expect(try undecryptableCount(in: sandbox.devices) == 0)
    try sandbox.succeed("device create old-phone --from old-phone --home elsewhere -q")
    // Four items in the backup are this-device-only.
    #expect(try undecryptableCount(in: sandbox.devices, "--home elsewhere") == 4)
    #expect(
      try sandbox.read("devices/old-phone/hardware.uid") != sandbox.read("elsewhere/old-phone/hardware.uid"))
    #expect(
      try sandbox.object(sandbox.succeed("device show old-phone --json"))["published_hardware_key"] as? Bool == false)
    let backup = try sandbox.keyhaul("backup old-phone -o c.tar --password-file .bp --rounds 1 --json")
    #expect(!backup.errors.contains("warning"))
    #expect(try sandbox.object(backup.output)["published_hardware_key"] as? Bool == false)
  }

  @Test("A device with --published-hardware-key causes warnings when it is created, shown and backed up")
  func flag() throws {
    let sandbox = try DeviceSandbox()
    try Data("correct horse\n".utf8).write(to: sandbox.home.appending(path: ".bp"))
    try sandbox.run("chmod 600 .bp")
    let created = try sandbox.run("keyhaul device create old-phone --from old-phone --published-hardware-key")
    #expect(
      created.status == 0 && created.errors.hasPrefix("warning: anyone can compute the device key of old-phone\n"))
    try checkWarnings(in: sandbox)
    let withoutSource = try sandbox.run("keyhaul device create x --published-hardware-key")
    #expect(
      withoutSource.status == 64 && withoutSource.errors.hasPrefix("error: --published-hardware-key needs --from\n"))
  }

  @Test("A published device key is recognized even in a record from an earlier version, which does not state it")
  func earlierVersion() throws {
    let sandbox = try DeviceSandbox()
    try Data("correct horse\n".utf8).write(to: sandbox.home.appending(path: ".bp"))
    try sandbox.run("chmod 600 .bp; keyhaul device create old-phone --from old-phone --published-hardware-key -q")
    let record = sandbox.home.appending(path: "devices/old-phone/device.json")
    let text = try String(contentsOf: record, encoding: .utf8)
    let withoutMember = text.replacing(/,?\s*"published_hardware_key"\s*:\s*true/, with: "")
    #expect(withoutMember != text)
    try Data(withoutMember.utf8).write(to: record)
    try checkWarnings(in: sandbox)
  }

  /// Checks that commands report the published key of old-phone, and that the key decrypts its backups from any device
  /// folder.
  private func checkWarnings(in sandbox: DeviceSandbox) throws {
    let shown = try sandbox.run("keyhaul device show old-phone").output
    #expect(shown.contains("device key") && shown.contains("published: anyone can compute it"), "\(shown)")
    #expect(try sandbox.run("keyhaul device show old-phone --json").output.contains(#""published_hardware_key": true"#))
    #expect(try sandbox.run("keyhaul device list --json").output.contains(#""published_hardware_key": true"#))
    let backups: [(flags: String, message: String)] = [
      (
        "--password-file .bp --rounds 1",
        "anyone with this backup's password can decrypt its this-device-only items on any device"
      ),
      ("--no-password", "anyone can decrypt the keychain in this backup"),
    ]
    for (flags, message) in backups {
      for dryRunFlag in ["-n", ""] {
        let outcome = try sandbox.run("keyhaul backup old-phone -o b.tar --yes \(flags) \(dryRunFlag)")
        let errors = unwrapped(outcome.errors)
        #expect(outcome.status == 0 && errors.contains("warning: \(message) why: the device key"), "\(outcome)")
        #expect(!outcome.errors.contains("can be decrypted only on"))
      }
    }
    // A device with the same description and name in another folder decrypts the items, as the warnings say.
    try sandbox.run("keyhaul backup old-phone -o b.tar --yes --password-file .bp --rounds 1 -q")
    try sandbox.run("keyhaul device create old-phone --from old-phone --published-hardware-key --home elsewhere -q")
    #expect(try undecryptableCount(in: sandbox, "--home elsewhere") == 0)
    let rekeyed = try sandbox.run("keyhaul rekey b.tar --no-password --password-file .bp")
    #expect(rekeyed.status == 0 && !rekeyed.output.contains("can be decrypted only on"), "\(rekeyed)")
    #expect(rekeyed.errors.contains("anyone can decrypt the keychain in b.tar"), "\(rekeyed)")
  }
}
