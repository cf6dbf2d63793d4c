import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Chosen fields of a table")
struct ChosenFieldsTests {
  private static func world() throws -> MoveWorld { try MoveWorld(backedUpTo: "family.backup") }

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

  @Test("are those of the document, in the order that was asked for, and nothing else", arguments: calls)
  func rows(_ call: (line: String, rows: String, fields: [String])) throws {
    let world = try Self.world()
    let whole = try JSONReader.read(Array(world.succeed("\(call.line) --json").utf8))
    let rows = try #require(whole[call.rows]?.arrayValue)
    #expect(!rows.isEmpty)
    for flag in ["--fields ", "--json=", "--json --fields=", "--format json --fields "] {
      let text = try world.succeed("\(call.line) \(flag)\(call.fields.joined(separator: ","))")
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

  @Test("with a secret that is asked for go into a file that its owner alone reads")
  func secret() throws {
    let world = try Self.world()
    try world.succeed(
      "item find old-phone --account 'push token' --reveal --fields acct,secret -o found.json --no-input")
    let found = try JSONReader.read(world.read("found.json"))
    #expect(found.arrayValue?.count == 1 && found.arrayValue?.first?["secret"]?["base64"] != nil)
    #expect(try world.devices.permissions(of: "found.json") == 0o600)
  }

  @Test("that are none end the call before anything is asked, with the list of those that there are")
  func unknown() throws {
    let world = try Self.world()
    let wrong = try world.keyhaul("device list --fields name,item --no-input")
    let error = try world.object(wrong.errors)
    #expect(wrong.status == 64 && wrong.output.isEmpty)
    #expect(error["message"] as? String == "there is no field \"item\"")
    #expect((error["why"] as? String)?.hasPrefix("the fields are name, udid, product_type") == true)
    #expect(error["try"] as? String == "--fields items")
    let closed = try world.keyhaul("inspect family.backup --list --fields accounts")
    #expect(closed.status == 64 && closed.errors.contains("there is no field"), "\(closed)")
  }

  @Test("are refused where the result has no rows, or another form is asked for")
  func withoutRows() throws {
    let world = try Self.world()
    for line in [
      "inspect family.backup", "verify family.backup", "plan family.backup --compare",
      "plan old-phone --to new-phone --by-app",
    ] {
      let refused = try world.keyhaul("\(line) --fields account")
      #expect(refused.status == 64 && refused.errors.contains("--fields needs a result with rows"), "\(refused)")
    }
    let csv = try world.keyhaul("item find old-phone --fields acct --format csv")
    #expect(csv.status == 64 && csv.errors.contains("--fields and --format csv cannot be used together"), "\(csv)")
    let other = try world.keyhaul("device show old-phone --fields name")
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
    (BackupAnswer.table, ["backup-answer-1.schema.json#/$defs/answer"]),
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

  @Test("are exactly the members that the schemas have for a row")
  func schemas() throws {
    for (table, places) in Self.tables {
      let named = try places.reduce(into: Set<String>()) { $0.formUnion(try Self.members(at: $1)) }
      #expect(Set(table.fields) == named && table.fields.count == named.count, "\(table.rows) of \(places)")
    }
  }
}
