import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("The --fields option")
struct ChosenFieldsTests {
  private static func sandbox() throws -> PhoneSandbox { try PhoneSandbox(backedUpTo: "family.backup") }

  /// Commands that print rows, each with the JSON member that contains the rows, and some fields of a row.
  private static let calls: [(line: String, rowsMember: String, fields: [String])] = [
    ("device list", "devices", ["name", "items"]),
    ("item find old-phone", "items", ["kind", "acct", "svce"]),
    ("inspect family.backup --list --password-file .bp", "items", ["account", "protection", "reason"]),
    ("plan family.backup --to new-phone --password-file .bp", "items", ["outcome", "account", "change"]),
    ("inspect family.backup --jobs 1", "backups", ["path", "code", "encrypted"]),
    ("verify family.backup --jobs 1 --password-file .bp", "backups", ["code", "document"]),
    ("plan family.backup --jobs 1 --password-file .bp", "backups", ["id", "name"]),
  ]

  @Test("The output contains the chosen fields in the given order, and nothing else", arguments: calls)
  func rows(_ call: (line: String, rowsMember: String, fields: [String])) throws {
    let sandbox = try Self.sandbox()
    let document = try JSONReader.read(Array(sandbox.succeed("\(call.line) --json").utf8))
    let rows = try #require(document[call.rowsMember]?.arrayValue)
    #expect(!rows.isEmpty)
    for flag in ["--fields ", "--json=", "--json --fields=", "--format json --fields "] {
      let text = try sandbox.succeed("\(call.line) \(flag)\(call.fields.joined(separator: ","))")
      let chosenRows = try #require(try JSONReader.read(Array(text.utf8)).arrayValue)
      #expect(chosenRows.count == rows.count)
      let positions = call.fields.compactMap { text.range(of: "\"\($0)\":")?.lowerBound }
      #expect(positions.count == call.fields.count && positions == positions.sorted(), "\(text.prefix(200))")
      for (row, chosenRow) in zip(rows, chosenRows) {
        #expect(Set(chosenRow.fields?.map(\.0) ?? []) == Set(call.fields))
        for field in call.fields where field != "document" {
          #expect(chosenRow[field] == row[field] ?? row["attributes"]?[field] ?? .null, "\(call.line): \(field)")
        }
      }
    }
  }

  @Test("Chosen fields with a secret are written to a file that only its owner can read")
  func secret() throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed(
      "item find old-phone --account 'push token' --reveal --fields acct,secret -o found.json --no-input")
    let chosen = try JSONReader.read(sandbox.read("found.json"))
    #expect(chosen.arrayValue?.count == 1 && chosen.arrayValue?.first?["secret"]?["base64"] != nil)
    #expect(try sandbox.devices.permissions(of: "found.json") == 0o600)
  }

  @Test("An unknown field is rejected before any question, with a list of the known fields")
  func unknown() throws {
    let sandbox = try Self.sandbox()
    let devices = try sandbox.keyhaul("device list --fields name,item --no-input")
    let error = try sandbox.object(devices.errors)
    #expect(devices.status == 64 && devices.output.isEmpty)
    #expect(error["message"] as? String == "there is no field \"item\"")
    #expect((error["why"] as? String)?.hasPrefix("the fields are name, udid, product_type") == true)
    #expect(error["try"] as? String == "--fields items")
    let backup = try sandbox.keyhaul("inspect family.backup --list --fields accounts")
    #expect(backup.status == 64 && backup.errors.contains("there is no field"), "\(backup)")
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
    let device = try sandbox.keyhaul("device show old-phone --fields name")
    #expect(device.status == 64 && device.errors.contains("--fields"), "\(device)")
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

  /// Returns the members that a schema names, including those of the schemas that it refers to.
  ///
  /// - Parameter location: A file and a JSON pointer in it, such as `backup-answer-1.schema.json#/$defs/answer`.
  private static func members(at location: String) throws -> Set<String> {
    let parts = location.split(separator: "#", maxSplits: 1)
    let file = try Data(contentsOf: Repository.root.appending(path: "docs/schemas/\(parts[0])"))
    var schema = try JSONReader.read(Array(file))
    for name in parts[1].split(separator: "/") { schema = try #require(schema[String(name)], "\(location)") }
    var names = Set(schema["properties"]?.fields?.map(\.0) ?? [])
    for subschema in [schema] + (schema["allOf"]?.arrayValue ?? []) {
      guard let reference = subschema["$ref"]?.stringValue else { continue }
      names.formUnion(try members(at: reference.hasPrefix("#") ? "\(parts[0])\(reference)" : reference))
    }
    return names
  }

  @Test("The known fields are the members of a row in the schemas")
  func schemas() throws {
    for (table, locations) in Self.tables {
      let members = try locations.reduce(into: Set<String>()) { $0.formUnion(try Self.members(at: $1)) }
      #expect(Set(table.fields) == members && table.fields.count == members.count, "\(table.rows) of \(locations)")
    }
  }
}
