import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("The --fields option")
struct ChosenFieldsTests {
  private static func sandbox() throws -> PhoneSandbox { try PhoneSandbox(backedUpTo: "family.backup") }

  /// A call that prints rows, the document's array that they are of, and fields of them.
  private static let calls = [
    ("device list", "devices", ["name", "items"]),
    ("item find old-phone", "items", ["kind", "acct", "svce"]),
    ("inspect family.backup --list --password-file .bp", "items", ["account", "protection", "reason"]),
    ("plan family.backup --to new-phone --password-file .bp", "items", ["outcome", "account", "change"]),
    ("inspect family.backup --jobs 1", "backups", ["path", "code", "encrypted"]),
    ("verify family.backup --jobs 1 --password-file .bp", "backups", ["code", "document"]),
    ("plan family.backup --jobs 1 --password-file .bp", "backups", ["id", "name"]),
  ]

  @Test("The output contains the chosen fields in the given order, and nothing else", arguments: calls)
  func rows(_ call: (line: String, rows: String, fields: [String])) throws {
    let sandbox = try Self.sandbox()
    let whole = try JSONReader.read(Array(sandbox.succeed("\(call.line) --json").utf8))
    let rows = try #require(whole[call.rows]?.arrayValue)
    #expect(!rows.isEmpty)
    for flag in ["--fields ", "--json=", "--json --fields=", "--format json --fields "] {
      let text = try sandbox.succeed("\(call.line) \(flag)\(call.fields.joined(separator: ","))")
      let chosen = try #require(try JSONReader.read(Array(text.utf8)).arrayValue)
      #expect(chosen.count == rows.count)
      let places = call.fields.compactMap { text.range(of: "\"\($0)\":")?.lowerBound }
      #expect(places.count == call.fields.count && places == places.sorted(), "\(text.prefix(200))")
      for (row, chosen) in zip(rows, chosen) {
        #expect(Set(chosen.fields?.map(\.0) ?? []) == Set(call.fields))
        for field in call.fields where field != "document" {
          #expect(chosen[field] == row[field] ?? row["attributes"]?[field] ?? .null, "\(call.line): \(field)")
        }
      }
    }
  }

  @Test("Chosen fields with a secret are written to a file that only its owner can read")
  func secret() throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed(
      "item find old-phone --account 'push token' --reveal --fields acct,secret -o found.json --no-input")
    let found = try JSONReader.read(sandbox.read("found.json"))
    #expect(found.arrayValue?.count == 1 && found.arrayValue?.first?["secret"]?["base64"] != nil)
    #expect(try sandbox.devices.permissions(of: "found.json") == 0o600)
  }

  @Test("An unknown field is rejected before any question, with a list of the known fields")
  func unknown() throws {
    let sandbox = try Self.sandbox()
    let wrong = try sandbox.keyhaul("device list --fields name,item --no-input")
    let error = try sandbox.object(wrong.errors)
    #expect(wrong.status == 64 && wrong.output.isEmpty)
    #expect(error["message"] as? String == "there is no field \"item\"")
    #expect((error["why"] as? String)?.hasPrefix("the fields are name, udid, product_type") == true)
    #expect(error["try"] as? String == "--fields items")
    let closed = try sandbox.keyhaul("inspect family.backup --list --fields accounts")
    #expect(closed.status == 64 && closed.errors.contains("there is no field"), "\(closed)")
  }

  @Test("--fields is rejected for a result without rows, and with other formats")
  func withoutRows() throws {
    let sandbox = try Self.sandbox()
    for line in [
      "inspect family.backup", "verify family.backup", "plan family.backup --compare",
      "plan old-phone --to new-phone --by-app",
    ] {
      let refused = try sandbox.keyhaul("\(line) --fields account")
      #expect(refused.status == 64 && refused.errors.contains("--fields needs a result with rows"), "\(refused)")
    }
    let csv = try sandbox.keyhaul("item find old-phone --fields acct --format csv")
    #expect(csv.status == 64 && csv.errors.contains("--fields and --format csv cannot be used together"), "\(csv)")
    let other = try sandbox.keyhaul("device show old-phone --fields name")
    #expect(other.status == 64 && other.errors.contains("--fields"), "\(other)")
  }

  // MARK: The schemas

  private static let tables: [(FieldTable, schemas: [String])] = [
    (DeviceList.table, ["device-list-1.schema.json#/properties/devices/items"]),
    (SimulatorList.table, ["simulator-list-1.schema.json#/properties/simulators/items"]),
    (ItemFind.table, ["keychain-items-1.schema.json#/properties/items/items"]),
    (
      Inspect.table,
      [
        "backup-inspection-1.schema.json#/properties/items/items",
        "dump-inspection-1.schema.json#/properties/items/items",
      ]
    ),
    (PlanCommand.table, ["migration-plan-1.schema.json#/properties/items/items"]),
    (BatchResult.table, ["backup-answer-1.schema.json#/$defs/answer"]),
  ]

  /// The members that a place of a schema names, with those of what it refers to.
  private static func members(at place: String) throws -> Set<String> {
    let parts = place.split(separator: "#", maxSplits: 1)
    let file = try Data(contentsOf: Repository.root.appending(path: "docs/schemas/\(parts[0])"))
    var found = try JSONReader.read(Array(file))
    for name in parts[1].split(separator: "/") { found = try #require(found[String(name)], "\(place)") }
    func follow(_ schema: JSONValue) throws -> Set<String> {
      var names = Set(schema["properties"]?.fields?.map(\.0) ?? [])
      for part in [schema] + (schema["allOf"]?.arrayValue ?? []) {
        guard let reference = part["$ref"]?.stringValue else { continue }
        names.formUnion(try members(at: reference.hasPrefix("#") ? "\(parts[0])\(reference)" : reference))
      }
      return names
    }
    return try follow(found)
  }

  @Test("The known fields are the members of a row in the schemas")
  func schemas() throws {
    for (table, places) in Self.tables {
      let named = try places.reduce(into: Set<String>()) { $0.formUnion(try Self.members(at: $1)) }
      #expect(Set(table.fields) == named && table.fields.count == named.count, "\(table.rows) of \(places)")
    }
  }
}
