import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Adding items")
struct ItemAddTests {
  let sandbox: DeviceSandbox

  init() throws {
    sandbox = try DeviceSandbox(after: "keyhaul device create d --from old-phone")
  }

  @Test(
    "A secret is stored byte for byte",
    arguments: [
      "printf ''", "printf x", "printf 'a\\n'", "printf 'a\\r\\n\\n'", "printf 'nul\\0and\\377bytes\\0'",
      "head -c 100000 /dev/urandom",
    ])
  func secrets(source: String) throws {
    try sandbox.run("\(source) > secret; chmod 600 secret")
    let flags = [
      "--secret-file secret", "--secret-file - < secret", "--secret-fd 3 3< secret", "--secret-command 'cat secret'",
    ]
    for (number, flag) in flags.enumerated() {
      #expect(try sandbox.run("keyhaul item add d --service s --account \(number) \(flag)").status == 0)
      let comparison = try sandbox.run("keyhaul item find d --service s --account \(number) --reveal | cmp - secret")
      #expect(comparison == .init(output: "", errors: "", status: 0))
    }
  }

  @Test(
    "The result states where the item can move, and the class may be given as a word or a code",
    arguments: [
      ("when-unlocked", "ak", "moves with an encrypted backup"),
      ("after-first-unlock", "ck", "moves with an encrypted backup"),
      ("always", "dk", "moves with an encrypted backup"),
      ("when-unlocked-this-device", "aku", "stays on this device"),
      ("after-first-unlock-this-device", "cku", "stays on this device"),
      ("always-this-device", "dku", "stays on this device"), ("passcode-only", "akpu", "never leaves this device"),
    ])
  func protections(word: String, code: String, mobility: String) throws {
    for spelling in [word, code] {
      let outcome = try sandbox.run(
        "keyhaul item add d --service s --account \(spelling) --protection \(spelling) --secret-command true")
      #expect(outcome.output == "Added generic password \"s · \(spelling)\" to d (\(mobility)).\n")
      let stored = try sandbox.document("keyhaul item find d --service s --account \(spelling) --json")
      #expect(ItemFindTests.items(of: stored).first?["protection"]?.stringValue == code)
    }
  }

  @Test("Every attribute flag stores its attribute")
  func attributes() throws {
    try sandbox.run(
      "keyhaul item add d --kind internet --server s --account a --protocol https --port 8443 --path /p --label l"
        + " --access-group g --sync --secret-command true")
    let stored = try #require(
      ItemFindTests.items(of: try sandbox.document("keyhaul item find d --server s --json")).first)
    #expect(stored["kind"] == "internet-password")
    let expected: [(code: String, value: JSONValue)] = [
      ("srvr", "s"), ("acct", "a"), ("ptcl", "htps"), ("port", 8443), ("path", "/p"), ("labl", "l"), ("agrp", "g"),
      ("sync", 1), ("pdmn", "ak"),
    ]
    for (code, value) in expected { #expect(stored["attributes"]?[code] == value) }
  }

  @Test("The default access group is keyhaul, or the app's first group")
  func groups() throws {
    func group(_ flags: String) throws -> JSONValue? {
      let line = "keyhaul item add d --service new --account='a\(flags)' \(flags) --secret-command true --json"
      return ItemFindTests.items(of: try sandbox.document(line)).first?["attributes"]?["agrp"]
    }
    #expect(try group("") == "keyhaul")
    #expect(try group("--app chat") == "ABCDE12345.org.example.chat")
    #expect(try group("--access-group other") == "other")
    let otherGroup = try sandbox.run(
      "keyhaul item add d --label x --app chat --access-group other --secret-command true")
    #expect(otherGroup.status == 1)
    #expect(
      otherGroup.errors == """
        error: chat may not use the access group other
          why: it has ABCDE12345.org.example.chat (errSecMissingEntitlement, -34018)
          try: --access-group ABCDE12345.org.example.chat, or leave --app out

        """)
    let unknownApp = try sandbox.run("keyhaul item add d --label x --app chaz --secret-command true")
    #expect(unknownApp.status == 1)
    #expect(unknownApp.errors.hasPrefix("error: d has no app chaz\n"))
    #expect(unknownApp.errors.hasSuffix("  try: --app chat\n"))
  }

  @Test("An item that requires user presence or biometry is reported as in no backup")
  func constraints() throws {
    for (flags, key) in [("--user-presence", "cpo"), ("--biometry", "cbio")] {
      let outcome = try sandbox.run("keyhaul item add d --service \(key) --account a \(flags) --secret-command true")
      #expect(outcome.output.hasSuffix("(in no backup).\n"))
      let stored = ItemFindTests.items(of: try sandbox.document("keyhaul item find d --service \(key) --json")).first
      #expect(stored?["attributes"]?["accc"]?["od"]?[key] != nil)
    }
  }

  @Test("With --json, the added item is printed without its secret, and a dry run is marked")
  func documents() throws {
    let added = try sandbox.document("keyhaul item add d --label x --secret-command 'echo hunter3' --json")
    #expect(added["format"] == "keychain-items/1")
    #expect(ItemFindTests.items(of: added).first?["attributes"]?["labl"] == "x")
    #expect(ItemFindTests.items(of: added).first?["index"]?.integerValue == 13)
    #expect(!added.text().contains("hunter3"))
    #expect(added["dry_run"] == nil)
    let dryRun = try sandbox.document("keyhaul item add d --service y --secret-command true --json -n")
    #expect(dryRun["dry_run"] == true)
    #expect(try sandbox.run("keyhaul item find d --service y").status == 4)
  }

  @Test("With --json, an error is one line")
  func jsonErrors() throws {
    let line = "keyhaul item add d --service chat.example --account anna --access-group ABCDE12345.org.example.chat"
    let outcome = try sandbox.run("\(line) --secret-command true --json")
    #expect(outcome.status == 1)
    #expect(outcome.output == "")
    let error = try JSONReader.read(Array(outcome.errors.utf8))
    #expect(error["id"] == "failed")
    #expect(error["why"]?.stringValue?.contains("-25299") == true)
  }

  @Test("Control characters in an untrusted name are escaped")
  func untrustedName() throws {
    let outcome = try sandbox.run(
      "keyhaul item add d --service \"$(printf 'a\\033[2Jb\\342\\200\\256c')\" --secret-command true")
    #expect(outcome.output.hasPrefix("Added generic password \"a\\u{1B}[2Jb\\u{202E}c\" to d"))
  }
}
