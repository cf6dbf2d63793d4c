import Foundation
import GRDB
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Finding items")
struct ItemFindTests {
  let sandbox: DeviceSandbox

  init() throws {
    sandbox = try DeviceSandbox(after: "keyhaul device create old-phone --from old-phone")
  }

  /// Returns the description of a bundled device, read from the repository.
  static func fixture(_ name: String) throws -> JSONValue {
    let file = Repository.root.appending(path: "Fixtures/devices/\(name).json")
    return try JSONReader.read(Array(Data(contentsOf: file)))
  }

  static func items(of document: JSONValue) -> [JSONValue] { document["items"]?.arrayValue ?? [] }

  @Test("JSON contains every attribute with its type, and secrets only with --reveal")
  func completeDocument() throws {
    let descriptions = Self.items(of: try Self.fixture("old-phone"))
    let document = try sandbox.document("keyhaul item find old-phone --json --reveal")
    #expect(document["format"] == "keychain-items/1")
    #expect(document["source"] == ["kind": "device", "name": "old-phone"])
    let items = Self.items(of: document)
    #expect(items.count == descriptions.count)
    for (index, (item, description)) in zip(items, descriptions).enumerated() {
      #expect(item["index"] == .count(index))
      #expect(item["kind"] == description["kind"])
      #expect(item["protection"] == description["protection"])
      #expect(item["readable"] == true)
      for (code, value) in description["attributes"]?.fields ?? [] {
        #expect(item["attributes"]?[code] == value["date"] ?? value)
      }
      if description["access_control"] != nil {
        #expect(item["secret"] == nil)
      } else {
        checkSecret(of: item, against: description)
      }
    }
  }

  /// Checks an item's secret against the secret in the item's description, which is text or base64.
  private func checkSecret(of item: JSONValue, against description: JSONValue) {
    let (secret, describedSecret) = (item["secret"], description["secret"])
    #expect(secret != nil)
    guard let text = describedSecret?["text"]?.stringValue else {
      #expect(secret?["base64"] == describedSecret?["base64"])
      return
    }
    #expect(secret?["text"]?.stringValue == text)
    #expect(secret?["base64"]?.stringValue == Data(text.utf8).base64EncodedString())
  }

  @Test("The table fits into 80 columns with any contents")
  func width() throws {
    let longName = String(repeating: "long ", count: 12)
    try sandbox.run(
      "keyhaul item add old-phone --service '\(longName)' --account '\(longName)' --protection cku "
        + "--secret-command true")
    let table = try sandbox.run("COLUMNS=80 keyhaul item find old-phone").output.split(separator: "\n")
    #expect(table.contains { $0.contains("certificate") })
    // Protection classes have short names, to leave room for the items' names.
    let row = table.first { $0.contains("bank.example") && $0.contains("device id") }
    #expect(row?.contains("  unlocked, bound  ") == true)
    #expect(table.map(\.count).max() == 80)
  }

  @Test("A secret is text in JSON only if it is text")
  func secretText() throws {
    // The secret of this item is not UTF-8.
    let document = try sandbox.document("keyhaul item find old-phone --account 'device id' --json --reveal")
    let secret = Self.items(of: document).first?["secret"]
    #expect(secret?["base64"] != nil)
    #expect(secret?["text"] == nil)
  }

  @Test("Without --reveal, no secret is printed")
  func withheld() throws {
    let document = try sandbox.document("keyhaul item find old-phone --json")
    #expect(Self.items(of: document).allSatisfy { $0["secret"] == nil && $0["attributes"]?["v_Data"] == nil })
  }

  @Test("An item's index is its index among all items of the device, for any search")
  func stableIndex() throws {
    let document = try sandbox.document("keyhaul item find old-phone --kind internet --server imap.example.org --json")
    // The only match is item 13 of the device.
    #expect(Self.items(of: document).map { $0["index"] } == [13])
  }

  @Test("The result stops at --limit")
  func limit() throws {
    #expect(Self.items(of: try sandbox.document("keyhaul item find old-phone --limit 3 --json")).count == 3)
    #expect(Self.items(of: try sandbox.document("keyhaul item find old-phone --limit 99 --json")).count == 22)
    // A header and 15 rows.
    #expect(try sandbox.run("keyhaul item find old-phone --limit 15").output.split(separator: "\n").count == 16)
    #expect(try sandbox.run("keyhaul item find old-phone --service chat.example --limit 1 --reveal").status == 64)
  }

  @Test("--sync, --app and --protection restrict the result")
  func narrowing() throws {
    func accounts(_ flags: String) throws -> [String?] {
      Self.items(of: try sandbox.document("keyhaul item find old-phone --json \(flags)")).map {
        $0["attributes"]?["acct"]?.stringValue
      }
    }
    #expect(try accounts("--sync") == ["Café Zürich", "анна"])
    #expect(try accounts("--app bank --kind generic") == ["device id", "card 4", "vault key"])
    #expect(try accounts("--protection passcode-only") == ["card 4"])
    #expect(try accounts("--protection akpu") == ["card 4"])
    #expect(try accounts("--biometry") == ["vault key"])
    let groupOfOtherApp = "ABCDE12345.org.example.chat"
    #expect(try sandbox.run("keyhaul item find old-phone --app bank --access-group \(groupOfOtherApp)").status == 1)
  }

  @Test("A search without a match has its own exit code, also with --json")
  func noMatch() throws {
    let text = try sandbox.run("keyhaul item find old-phone --service nothing")
    #expect(text == .init(output: "", errors: "No item on old-phone matches.\n", status: 4))
    #expect(
      try sandbox.run("keyhaul item find old-phone --service nothing -q") == .init(output: "", errors: "", status: 4))
    let json = try sandbox.run("keyhaul item find old-phone --service nothing --json")
    #expect(json.status == 4 && json.errors == "")
    #expect(Self.items(of: try JSONReader.read(Array(json.output.utf8))).isEmpty)
    #expect(try sandbox.run("keyhaul item find old-phone --service nothing --reveal").status == 4)
  }

  @Test("A secret is shown on a terminal only with -o -", arguments: [[], ["--json"]])
  func terminalRule(flags: [String]) throws {
    let search = ["item", "find", "old-phone", "--service", "wallet"] + flags
    let refused = try sandbox.runOnTerminal(search + ["--reveal"])
    #expect(refused.status == 64)
    #expect(!refused.terminal.contains("4929-0000"))
    #expect(refused.terminal.contains("a secret is not shown on a terminal by default"))
    let allowed = try sandbox.runOnTerminal(search + ["--reveal", "-o", "-"])
    #expect(allowed.status == 0)
    #expect(allowed.terminal.contains("4929-0000-0000-0004"))
    let table = try sandbox.runOnTerminal(search)
    #expect(table.status == 0)
    #expect(table.terminal.contains("wallet"))
  }

  @Test("A secret, table or document replaces a file only with --yes, and then only its owner can read the file")
  func file() throws {
    try sandbox.run("umask 0; echo old > out; chmod 644 out")
    let results: [(flags: String, beginning: String)] = [
      ("--service wallet --reveal", "4929-0000-0000-0004"), ("--service wallet", "KIND"), ("--json --reveal", "{"),
    ]
    for (flags, beginning) in results {
      let unconfirmed = try sandbox.run("keyhaul item find old-phone \(flags) -o out")
      #expect(unconfirmed.status == 64)
      #expect(unconfirmed.errors.contains("replacing out must be confirmed"))
      let outcome = try sandbox.run("umask 0; keyhaul item find old-phone \(flags) -o out --yes")
      #expect(outcome.output == "")
      #expect(outcome.status == 0)
      let written = try String(contentsOf: sandbox.home.appending(path: "out"), encoding: .utf8)
      #expect(written.hasPrefix(beginning))
      #expect(try sandbox.permissions(of: "out") == 0o600)
    }
    #expect(try sandbox.run("keyhaul item find old-phone --reveal -o other").status == 64)
    #expect(try sandbox.run("keyhaul item find old-phone --service wallet --reveal -o no/such/folder").status == 1)
    #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.home.path).sorted() == ["devices", "out"])
  }

  @Test("A file of the device cannot be the output", arguments: ["keychain-2.db", "device.json", "hardware.uid"])
  func overInput(name: String) throws {
    try sandbox.run("keyhaul device create d; ln -s devices/d/\(name) link")
    let filesBefore = try sandbox.files(of: "d")
    for output in ["devices/d/\(name)", "link"] {
      let outcome = try sandbox.run("keyhaul item find d -o \(output) --label x")
      #expect(outcome.status == 64)
      #expect(outcome.errors.hasPrefix("error: \(output) is the input"))
    }
    #expect(try sandbox.files(of: "d") == filesBefore)
  }

  @Test("An unreadable item is listed with the readable items, and the exit code is 3")
  func unreadable() throws {
    let path = sandbox.devices.appending(path: "old-phone/keychain-2.db").path
    // The encrypted data of the third generic password gets another last byte.
    try DatabaseQueue(path: path).write { database in
      try database.execute(sql: "UPDATE genp SET data = substr(data, 1, length(data) - 1) || x'00' WHERE rowid = 3")
    }
    let text = try sandbox.run("keyhaul item find old-phone")
    #expect(text.status == 3)
    #expect(text.output.split(separator: "\n").count == 23)
    #expect(text.output.contains("(cannot be read)"))
    #expect(
      text.errors.hasPrefix("warning: 1 item of old-phone cannot be read\n  why: the first is a generic password:"))
    let json = try sandbox.run("keyhaul item find old-phone --json --reveal")
    #expect(json.status == 3)
    let items = Self.items(of: try JSONReader.read(Array(json.output.utf8)))
    let damaged = try #require(items.first { $0["readable"] == false })
    #expect(damaged["index"] == 2)
    #expect(damaged["protection"] == "ak")
    #expect(damaged["reason"] == "malformed")
    #expect(damaged["detail"]?.stringValue?.isEmpty == false)
    #expect(damaged["attributes"] == nil && damaged["secret"] == nil)
    #expect(try sandbox.run("keyhaul item find old-phone --service chat.example --account anna --reveal").status == 13)
  }

  @Test("Untrusted names are escaped on a terminal and complete in JSON")
  func untrustedNames() throws {
    try sandbox.run("keyhaul device create hostile-names --from hostile-names")
    for flags in ["", "-v", "-vv", "--kind internet", "--json"] {
      for width in ["80", "120", ""] {
        let outcome = try sandbox.run("COLUMNS=\(width) keyhaul item find hostile-names \(flags)")
        #expect(outcome.status == 0)
        #expect((outcome.output + outcome.errors).unicodeScalars.allSatisfy(Self.isPrintable))
        guard flags != "--json", let columns = Int(width) else { continue }
        #expect(outcome.output.split(separator: "\n").allSatisfy { DisplayWidth.columns(of: String($0)) <= columns })
      }
    }
    let descriptions = Self.items(of: try Self.fixture("hostile-names"))
    let items = Self.items(of: try sandbox.document("keyhaul item find hostile-names --json"))
    #expect(items.map { $0["attributes"]?["labl"] } == descriptions.map { $0["attributes"]?["labl"] })
    let terminal = try sandbox.runOnTerminal(["item", "find", "hostile-names", "--color", "never"])
    #expect(terminal.terminal.unicodeScalars.allSatisfy(Self.isPrintable))
  }

  private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control: scalar == "\n"
    case .format, .lineSeparator, .paragraphSeparator, .surrogate: false
    default: true
    }
  }
}
