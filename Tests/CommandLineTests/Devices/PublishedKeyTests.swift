import Foundation
import Testing

@testable import keyhaul

@Suite("A device whose hardware key anyone can compute")
struct PublishedKeyTests {
  private func sealedCount(_ world: DeviceWorld, _ line: String) throws -> Int {
    let items = try #require(
      try JSONSerialization.jsonObject(with: Data(world.run("keyhaul \(line)").output.utf8)) as? [String: Any])
    return try #require(items["items"] as? [[String: Any]]).count { $0["readable"] as? Bool == false }
  }

  @Test("is not what a description gives: its this-device-only items cannot be decrypted in another home")
  func random() throws {
    let world = try MoveWorld()
    try world.backUp(to: "b.tar")
    let line = "inspect b.tar --list --json -q --password-file .bp"
    #expect(try sealedCount(world.devices, line) == 0)
    try world.succeed("device create old-phone --from old-phone --home elsewhere -q")
    #expect(try sealedCount(world.devices, "\(line) --home elsewhere") == 4)
    #expect(
      try world.read("devices/old-phone/hardware.uid") != world.read("elsewhere/old-phone/hardware.uid"))
    #expect(try world.object(world.succeed("device show old-phone --json"))["published_hardware_key"] as? Bool == false)
    let backup = try world.keyhaul("backup old-phone -o c.tar --password-file .bp --rounds 1 --json")
    #expect(backup.errors.contains("warning") == false)
    #expect(try world.object(backup.output)["published_hardware_key"] as? Bool == false)
  }

  @Test("is made by a flag that says so, and is told of when it is made, shown and backed up")
  func flag() throws {
    let world = try DeviceWorld()
    try Data("correct horse\n".utf8).write(to: world.home.appending(path: ".bp"))
    try world.run("chmod 600 .bp")
    let made = try world.run("keyhaul device create old-phone --from old-phone --published-hardware-key")
    #expect(made.status == 0 && made.errors.hasPrefix("warning: anyone can compute the hardware key of old-phone\n"))
    try check(world)
    let alone = try world.run("keyhaul device create x --published-hardware-key")
    #expect(alone.status == 64 && alone.errors.hasPrefix("error: --published-hardware-key needs --from\n"))
  }

  @Test("is recognized where an earlier version made it, which did not say so")
  func earlier() throws {
    let world = try DeviceWorld()
    try Data("correct horse\n".utf8).write(to: world.home.appending(path: ".bp"))
    try world.run("chmod 600 .bp; keyhaul device create old-phone --from old-phone --published-hardware-key -q")
    let record = world.home.appending(path: "devices/old-phone/device.json")
    let text = try String(contentsOf: record, encoding: .utf8)
    let plain = text.replacing(/,?\s*"published_hardware_key"\s*:\s*true/, with: "")
    #expect(plain != text)
    try Data(plain.utf8).write(to: record)
    try check(world)
  }

  private func check(_ world: DeviceWorld) throws {
    let shown = try world.run("keyhaul device show old-phone").output
    #expect(shown.contains("hardware key") && shown.contains("published: anyone can compute it"), "\(shown)")
    #expect(try world.run("keyhaul device show old-phone --json").output.contains(#""published_hardware_key": true"#))
    #expect(try world.run("keyhaul device list --json").output.contains(#""published_hardware_key": true"#))
    for (flags, said) in [
      (
        "--password-file .bp --rounds 1",
        "anyone with this backup's password can decrypt its this-device-only items on any device"
      ),
      ("--no-password", "anyone can decrypt the keychain in this backup"),
    ] {
      for dry in [" -n", ""] {
        let outcome = try world.run("keyhaul backup old-phone -o b.tar --yes \(flags)\(dry)")
        let told = outcome.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(outcome.status == 0 && told.contains("warning: \(said) why: the hardware key"), "\(outcome)")
        #expect(!outcome.errors.contains("can be decrypted only on"))
      }
    }
    // It is as they say: a device of the same description and name opens them anywhere.
    try world.run("keyhaul backup old-phone -o b.tar --yes --password-file .bp --rounds 1 -q")
    try world.run("keyhaul device create old-phone --from old-phone --published-hardware-key --home elsewhere -q")
    #expect(try sealedCount(world, "inspect b.tar --list --json -q --password-file .bp --home elsewhere") == 0)
    let taken = try world.run("keyhaul rekey b.tar --no-password --password-file .bp")
    #expect(taken.status == 0 && !taken.output.contains("can be decrypted only on"), "\(taken)")
    #expect(taken.errors.contains("anyone can decrypt the keychain in b.tar"), "\(taken)")
  }
}
