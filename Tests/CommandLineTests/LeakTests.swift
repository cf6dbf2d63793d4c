import Foundation
import Testing

@testable import keyhaul

@Suite("Nothing in clear")
struct LeakTests {
  /// Twenty secrets, text and bytes, from 24 to 4,096 bytes.
  static let secrets: [[UInt8]] = (0..<20).map { index in
    var numbers = SeededNumbers(UInt64(index) + 101)
    if index < 10 {
      let letters = Array("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789".utf8)
      return (0..<24 + index * 40).map { _ in letters.randomElement(using: &numbers) ?? 0 }
    }
    let count = [32, 33, 64, 100, 256, 512, 1000, 2048, 4000, 4096][index - 10]
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &numbers) }
  }

  private func world() throws -> MoveWorld {
    let world = try MoveWorld()
    for (index, secret) in Self.secrets.enumerated() {
      try world.write(secret, to: ".secret")
      let protection = ["ak", "ck", "dk", "aku", "cku", "dku", "akpu"][index % 7]
      try world.succeed(
        "item add old-phone --service planted --account n\(index) --protection \(protection) --secret-file .secret")
    }
    try FileManager.default.removeItem(at: world.home.appending(path: ".secret"))
    return world
  }

  @Test("what any verb prints or writes, in any mode, holds no secret, no hardware key and no password")
  func everything() throws {
    let world = try world()
    var printed = Data()
    var lines = 0
    func run(_ line: String) throws {
      for mode in ["", "-vv", "--json", "--json -vv", "-q"] {
        let outcome = try world.devices.run("keyhaul \(line) \(mode)")
        printed += Data(outcome.output.utf8) + Data(outcome.errors.utf8)
        lines += 1
      }
    }
    for name in ["b.tar", "b.tar.gz", "b.tar.zst", "b.zip", "b/"] {
      try run("backup old-phone -o \(name) --password-file .bp --rounds 1 --yes")
      try run("plan \(name) --to new-phone --password-file .bp")
    }
    try run("backup old-phone -o plain.tar --no-password --yes")
    try run("plan plain.tar --to new-phone -o plain.plan")
    try run("plan b.tar --to new-phone --password-file .bp --format html -o plan.html")
    try run("plan b.tar --to old-phone --password-file .bp --format html")
    try run("plan b.tar --to old-phone --password-file .bp -o own.plan")
    try run("plan b.tar --to new-phone --password-file .bp --existing merge -o move.plan")
    for archive in ["b.zip", "plain.tar"] {
      for part in ["", "--list", "--keybag", "--tree"] {
        try run("inspect \(archive) --password-file .bp \(part)")
        try run("inspect \(archive) \(part)")
      }
      try run("restore \(archive) --to new-phone --password-file .bp -n")
      try run("verify \(archive) --password-file .bp")
      try run("verify \(archive) --quick")
      try run("diff \(archive) old-phone --password-file .bp")
      try run("diff new-phone \(archive) --password-file .bp --exit-code")
    }
    try run("restore b.tar --to new-phone --password-file .bp --yes")
    try run("restore b.tar --to old-phone --password-file .bp --yes --existing merge")
    for line in [
      "item find old-phone", "item find new-phone --service planted", "device list", "device show old-phone",
      "item find old-phone --service planted --reveal --user-presence", "explain device-bound", "device lock old-phone",
      "backup old-phone -o locked.tar --password-file .bp", "restore b.tar --to old-phone --password-file .bp",
      "item find old-phone --service planted",
    ] {
      try run(line)
    }
    #expect(lines > 150 && printed.count > 100_000)

    var places = ["what was printed": printed]
    // Everything that was written outside of the devices, packed files unpacked as well.
    try world.devices.run("gzip -dc b.tar.gz > b.gz.raw; unzip -p b.zip > b.zip.raw; true")
    let unpacked = try world.devices.run("zstd -qdc b.tar.zst > b.zst.raw; wc -c < b.zst.raw")
    if unpacked.output.trimmingCharacters(in: .whitespacesAndNewlines) == "0" {
      Issue.record(Comment("zstd is not installed here: the inside of b.tar.zst was not looked at"), severity: .warning)
    }
    for file in try world.files(in: ".") where !file.hasPrefix("devices/") && file != ".bp" {
      places[file] = try Data(contentsOf: world.home.appending(path: file))
    }
    #expect(
      places["b.gz.raw"].map { $0.count > 40_000 } == true && places["b.zip.raw"].map { $0.count > 40_000 } == true)
    #expect(places["b/Manifest.db"] != nil && places["own.plan"] != nil)

    var needles = Self.secrets.enumerated().map { ("secret \($0.offset)", $0.element) }
    for device in ["old-phone", "new-phone"] {
      needles.append(("the hardware of \(device)", try world.read("devices/\(device)/hardware.uid")))
    }
    needles.append(("the password", Array(MoveWorld.password.utf8)))
    for (name, needle) in needles {
      for spelling in Self.spellings(of: needle) {
        for (place, data) in places { #expect(data.range(of: spelling) == nil, "\(name) in \(place)") }
      }
    }
  }

  @Test("but --reveal shows a secret, so that this search would have found it")
  func reveal() throws {
    let world = try world()
    for (index, secret) in Self.secrets.enumerated() {
      let json = Data(
        try world.succeed("item find old-phone --service planted --account n\(index) --reveal --json").utf8)
      #expect(Self.spellings(of: secret).contains { json.range(of: $0) != nil }, "secret \(index)")
    }
    let all = Data(try world.succeed("item find old-phone --service planted --json").utf8)
    for secret in Self.secrets { #expect(!Self.spellings(of: secret).contains { all.range(of: $0) != nil }) }
    // And so would a file of a device that is not sealed.
    let uid = try world.read("devices/old-phone/hardware.uid")
    #expect(uid.count == 32 && Data(uid).range(of: Data(uid.dropLast())) != nil)
  }

  /// The first 24 bytes as they are, in hexadecimal, and in base 64 wherever its groups of three begin.
  private static func spellings(of secret: [UInt8]) -> [Data] {
    let core = Array(secret.prefix(24))
    let hex = core.map { (byte: UInt8) in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    let shifted = (0..<3).map { shift in
      let part = Data(core.dropFirst(shift))
      // Whole groups alone: what follows would change the last digits.
      return Data(part.prefix(part.count / 3 * 3).base64EncodedString().utf8)
    }
    return [Data(core), Data(hex.utf8), Data(hex.uppercased().utf8)] + shifted
  }
}
