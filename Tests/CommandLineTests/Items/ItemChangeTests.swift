import Foundation
import GRDB
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Changing, deleting and listing items")
struct ItemChangeTests {
  let sandbox: DeviceSandbox

  init() throws {
    sandbox = try DeviceSandbox(after: "keyhaul device create d --from old-phone")
  }

  /// Returns the number of items that a search finds.
  private func count(_ search: String) throws -> Int {
    ItemFindTests.items(of: try sandbox.document("keyhaul item find \(search) --json")).count
  }

  @Test("Every --new-... flag changes its attribute")
  func everyAttribute() throws {
    try sandbox.run("keyhaul item add d --kind internet --server s --account a --secret-command true")
    let document = try sandbox.document(
      "keyhaul item update d --server s --yes --json --new-server t --new-account b --new-protocol https"
        + " --new-port 8443 --new-path /p --new-label l --new-access-group g --new-protection cku")
    #expect(document["changed"] == 1)
    let expected: [(code: String, value: JSONValue)] = [
      ("srvr", "t"), ("acct", "b"), ("ptcl", "htps"), ("port", 8443), ("path", "/p"), ("labl", "l"), ("agrp", "g"),
      ("pdmn", "cku"),
    ]
    for (code, value) in expected {
      #expect(ItemFindTests.items(of: document).first?["attributes"]?[code] == value, "\(code)")
    }
    #expect(try count("d --server t --protection cku") == 1)
    #expect(try count("d --server s") == 0)
  }

  @Test("The JSON of a change lists the matching items and counts each change, and a dry run counts none")
  func countsOfDryRuns() throws {
    let cases: [(line: String, member: String)] = [
      ("delete d --service chat.example", "deleted"), ("update d --service chat.example --new-label l", "changed"),
    ]
    for (line, member) in cases {
      let matchCount = try count("d --service chat.example")
      #expect(matchCount > 1)
      let dryRun = try sandbox.document("keyhaul item \(line) -n --json")
      #expect(dryRun[member] == 0 && dryRun["dry_run"] == true, "\(dryRun)")
      #expect(ItemFindTests.items(of: dryRun).count == matchCount)
      #expect(try count("d --service chat.example") == matchCount)
      let copy = try DeviceSandbox(copyOf: sandbox)
      let change = try copy.document("keyhaul item \(line) --yes --json")
      #expect(change[member] == .count(matchCount) && change["dry_run"] == nil, "\(change)")
      #expect(ItemFindTests.items(of: change).count == matchCount)
    }
  }

  @Test("A new secret is stored byte for byte, and attributes stay unchanged")
  func newSecret() throws {
    try sandbox.run("printf 'a\\0b\\n' > secret; chmod 600 secret")
    try sandbox.run("keyhaul item add d --service s --account a --label l --secret-command 'echo old'")
    try sandbox.run("keyhaul item update d --service s --new-secret-file secret --yes")
    #expect(try sandbox.run("keyhaul item find d --service s --label l --reveal | cmp - secret").status == 0)
  }

  @Test("With --app, only items in the app's groups are changed or deleted")
  func apps() throws {
    let totalCount = try count("d")
    let appCount = try count("d --app chat")
    #expect(appCount > 0 && appCount < totalCount)
    #expect(try sandbox.document("keyhaul item delete d --app chat --yes --json")["deleted"] == .count(appCount))
    #expect(try count("d") == totalCount - appCount)
    let fromOtherGroup = try sandbox.run("keyhaul item delete d --app chat --access-group other --yes")
    #expect(fromOtherGroup.status == 1)
    let toOtherGroup = try sandbox.run("keyhaul item update d --app bank --label '*' --new-access-group other --yes")
    #expect(toOtherGroup.status == 1 || toOtherGroup.status == 4)
  }

  @Test("A dry run, a refusal or an empty match does not change the device's files")
  func unchanged() throws {
    let filesBefore = try sandbox.files(of: "d")
    for line in [
      "delete d --service '*' -n", "delete d --service nobody --yes", "delete d --service '*'",
      "update d --service '*' --new-label x -n", "update d --service '*' --new-label x",
    ] { try sandbox.run("keyhaul item \(line)") }
    #expect(try sandbox.run("keyhaul item delete d --kind generic", typed: ["no"]).status == 1)
    #expect(try sandbox.files(of: "d") == filesBefore)
  }

  @Test("A damaged item stays if it does not match, and is deleted if it matches")
  func damaged() throws {
    let path = sandbox.devices.appending(path: "d/keychain-2.db").path
    try DatabaseQueue(path: path).write { database in
      try database.execute(sql: "UPDATE genp SET data = substr(data, 1, length(data) - 1) || x'00' WHERE rowid = 3")
    }
    let totalCount = try count("d")
    let update = try sandbox.run("keyhaul item update d --kind generic --new-label x --yes")
    #expect(update.status == 3)
    #expect(update.errors.contains("1 item of d cannot be read and was not changed"))
    #expect(try count("d") == totalCount)
    #expect(try sandbox.run("keyhaul item delete d --kind generic --service '*' --yes").status == 0)
    #expect(try count("d --kind generic") == 1)
    #expect(try sandbox.document("keyhaul item delete d --kind generic --yes --json")["deleted"] == 1)
  }

  @Test("Patterns with stars also match access groups")
  func patterns() throws {
    let items = ItemFindTests.items(of: try sandbox.document("keyhaul item find d --json"))
    /// Returns an attribute's values as text. Values that are stored as data are printed in base64, and decoded here.
    func texts(_ code: String) -> [String] {
      items.compactMap { item in
        let value = item["attributes"]?[code]
        if let text = value?.stringValue { return text }
        let data = value?["base64"]?.stringValue.flatMap { Data(base64Encoded: $0) }
        return data.map { String(decoding: $0, as: UTF8.self) }
      }
    }
    #expect(try count("d --service '*.example'") == texts("svce").count { $0.hasSuffix(".example") })
    #expect(try count("d --access-group 'ABCDE*'") == texts("agrp").count { $0.hasPrefix("ABCDE") })
    #expect(try count("d --account '*a*'") == texts("acct").count { $0.contains("a") })
    #expect(try count("d --kind generic --account '*a*' --limit 1") == 1)
  }

  @Test("--limit applies after --sort")
  func sorting() throws {
    func values(of code: String, _ flags: String) throws -> [String] {
      ItemFindTests.items(of: try sandbox.document("keyhaul item find d --kind generic \(flags) --json"))
        .compactMap { $0["attributes"]?[code]?.stringValue }
    }
    let accounts = try values(of: "acct", "")
    #expect(try values(of: "acct", "--sort account") == accounts.sorted())
    #expect(try values(of: "acct", "--sort account --reverse") == accounts.sorted().reversed())
    func indexes(_ flags: String) throws -> [JSONValue?] {
      ItemFindTests.items(of: try sandbox.document("keyhaul item find d \(flags) --json")).map { $0["index"] }
    }
    #expect(try indexes("--sort account --limit 2") == Array(indexes("--sort account").prefix(2)))
    let dates = try values(of: "mdat", "--sort changed")
    #expect(dates == dates.sorted())
    for key in ["kind", "name", "label", "group", "protection", "created"] {
      #expect(try values(of: "acct", "--sort \(key)").sorted() == accounts.sorted(), "\(key)")
    }
  }

  @Test("CSV has one line per item, and secrets only with --reveal")
  func csv() throws {
    // Spreadsheets run a cell that starts with "=" as a formula.
    for (account, secret) in [("=cmd", "plain"), ("b,c", "=formula"), ("c", "nul\\0")] {
      try sandbox.run("keyhaul item add d --service csv --account '\(account)' --secret-command \"printf '\(secret)'\"")
    }
    let withoutSecrets = try sandbox.run("keyhaul item find d --service csv --format csv").output
    let lines = withoutSecrets.components(separatedBy: "\r\n")
    #expect(lines[0].hasPrefix("kind,service,server,account,label,access_group,protection,"))
    #expect(lines.count == 5 && lines[4].isEmpty)
    #expect(lines[1].hasPrefix("generic-password,csv,,'=cmd,,keyhaul,ak,"))
    #expect(lines[2].hasPrefix("generic-password,csv,,\"b,c\",,keyhaul,ak,"))
    #expect(!withoutSecrets.contains("plain,") && !withoutSecrets.contains("secret"))
    let withSecrets = try sandbox.run("keyhaul item find d --service csv --format csv --reveal").output
    let secretLines = withSecrets.components(separatedBy: "\r\n")
    #expect(secretLines[0].hasSuffix(",secret,secret_base64"))
    #expect(secretLines[1].hasSuffix(",1,plain,"))
    #expect(secretLines[2].hasSuffix(",1,,\(Data("=formula".utf8).base64EncodedString())"))
    #expect(
      secretLines[3].hasSuffix(",1,nul\0,") || secretLines[3].hasSuffix(Data("nul\0".utf8).base64EncodedString()))
    try sandbox.run("keyhaul item find d --service csv --format csv --reveal -o out.csv")
    #expect(try sandbox.permissions(of: "out.csv") == 0o600)
    let terminal = try sandbox.runOnTerminal(["item", "find", "d", "--format", "csv", "--reveal"])
    #expect(terminal.status == 64)
  }
}
