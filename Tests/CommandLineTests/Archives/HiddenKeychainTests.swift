import Foundation
import Testing

@testable import keyhaul

/// The keychain file is there and is none, or is listed and not there: what it held nobody knows, and no report may say
/// that it held nothing.
@Suite("A keychain of which nothing can be read")
struct HiddenKeychainTests {
  private static let keychain = "b/51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"

  private func world(isThere: Bool) throws -> MoveWorld {
    let world = try MoveWorld(backedUpTo: "b/")
    if isThere {
      try world.write([], to: Self.keychain)
    } else {
      try FileManager.default.removeItem(at: world.home.appending(path: Self.keychain))
    }
    return world
  }

  @Test(
    "is no empty one to whoever takes its items for all that it holds", arguments: [true, false],
    [
      "export b -o z.json --reveal --password-file .bp", "export b -o z.csv --format csv --reveal --password-file .bp",
      "diff b b --password-file .bp --exit-code", "plan b --password-file .bp",
      "plan b --to new-phone --password-file .bp",
      "plan b --password-file .bp --format html -o z.html", "restore b --to new-phone --password-file .bp --yes",
      "why b --account anna --password-file .bp",
    ])
  func refused(isThere: Bool, line: String) throws {
    let world = try world(isThere: isThere)
    let before = try world.contents(of: "new-phone")
    let outcome = try world.keyhaul(line)
    #expect(outcome.status == 13 && outcome.output == "", "\(outcome)")
    #expect(!FileManager.default.fileExists(atPath: world.home.appending(path: "z.json").path))
    #expect(!FileManager.default.fileExists(atPath: world.home.appending(path: "z.html").path))
    #expect(try world.contents(of: "new-phone") == before)
  }

  @Test("is shown as one that cannot be read, with everything else of the backup", arguments: [true, false])
  func shown(isThere: Bool) throws {
    let world = try world(isThere: isThere)
    let line = "inspect b --password-file .bp"
    let text = try world.keyhaul(line)
    #expect(text.status == 3 && text.output.contains("cannot be read: "), "\(text)")
    #expect(!text.output.contains("items none"), "\(text.output)")
    let list = try world.keyhaul("\(line) --list")
    #expect(list.output.contains("Its keychain cannot be read: "), "\(list)")
    let keychain = try #require(try world.object(world.keyhaul("\(line) --json").output)["keychain"] as? [String: Any])
    #expect(keychain["items"] is NSNull)
    let page = try world.keyhaul("\(line) --format html -o -").output
    #expect(page.contains("The keychain in this backup cannot be read, so its contents are not known."))
    #expect(!page.contains("is empty"))
  }
}

@Suite("What writes a damaged backup again")
struct DamageCarriedOnTests {
  @Test("gives no password to a backup whose keychain is not what was written: its digest would be right afterwards")
  func firstPassword() throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o plain/ --no-password -q")
    let keychain = "plain/51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"
    var bytes = try world.read(keychain)
    bytes[bytes.count - 41] ^= 1
    try world.write(bytes, to: keychain)
    let verified = try world.keyhaul("verify plain")
    #expect(verified.status == 13, "\(verified)")
    let before = try world.files(in: "plain").map { try world.read("plain/\($0)") }
    let outcome = try world.keyhaul("rekey plain --in-place --new-password-file .bp --rounds 1")
    #expect(outcome.status == 13 && outcome.errors.contains("plain is damaged"), "\(outcome)")
    #expect(try world.files(in: "plain").map { try world.read("plain/\($0)") } == before)
  }

  @Test("says of a list with bytes behind its end that a decrypted copy and its files do not show them")
  func tail() throws {
    let world = try MoveWorld(backedUpTo: "b/")
    try world.write(try world.read("b/Manifest.db") + [1, 2, 3, 4, 5, 6, 7], to: "b/Manifest.db")
    let copy = try world.keyhaul("convert b --decrypted -o clear/ --password-file .bp")
    #expect(
      copy.status == 3
        && copy.errors.contains(
          "is damaged, and a decrypted copy would hide the damage"),
      "\(copy)")
    let files = try world.keyhaul("export b --files out --password-file .bp")
    #expect(files.status == 3 && files.errors.contains("follow its last page"), "\(files)")
  }
}
