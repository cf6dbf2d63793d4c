import Basics
import KeychainFormats
import Testing

@testable import VirtualDevice

/// Every row of the hand-written table is a call with the status from Apple's source code.
@Suite("SecItem: table of calls")
struct SecItemCallTests {
  private static let rows = (try? SecItemCallRow.all()) ?? []

  @Test("The table has at least 300 rows, each with its rule")
  func size() throws {
    let rows = try SecItemCallRow.all()
    #expect(rows.count >= 300)
    #expect(rows.allSatisfy { $0.rule.count > 10 })
    #expect(Set(rows.map(\.call)) == ["add", "find", "update", "delete"])
  }

  @Test("A call has the status and the result in the table", arguments: rows)
  func call(_ row: SecItemCallRow) throws {
    let phone = try SecItemPhone(passcode: row.conditions.contains("no-passcode") ? "" : "1234")
    phone.isSyncing = row.conditions.contains("syncing")
    var reader = SecItemQueryReader()
    for (index, text) in row.given.enumerated() {
      // A query, or `app>query`.
      let appAndQuery = text.split(separator: ">", maxSplits: 1).map(String.init)
      let app = appAndQuery.count > 1 ? appAndQuery[0] : "mail"
      var query = try reader.query(appAndQuery[appAndQuery.count - 1])
      query["r_PersistentRef"] = true
      let reference = try phone.add(query, as: app)
      if index == 0 { reader.reference = try #require(reference?.dataValue) }
    }
    phone.answer = row.conditions.compactMap(AuthenticationOutcome.init(rawValue:)).first ?? .unavailable
    try phone.enter(row.conditions.compactMap(SecItemPhone.State.init(rawValue:)).first ?? .unlocked)

    let query = try reader.query(row.query)
    let changes = try reader.query(row.changes)
    var result: SecItemValue?
    let status = phone.status { () throws(SecItemError) in
      switch row.call {
      case "add": result = try phone.add(query, as: row.app)
      case "find": result = try phone.find(query, as: row.app)
      case "update": try phone.update(query, changes, as: row.app)
      default: try phone.delete(query, as: row.app)
      }
    }
    #expect(status.rawValue == row.status, "\(row)")
    if !row.result.isEmpty { #expect(shape(of: result) == row.result, "\(row)") }
  }

  /// Returns a description of a result: `nothing`, `data:` with the text of a secret, `empty-data`, a persistent reference
  /// such as `ref20 genp`, `dictionary` with its special keys, `list` with the count and the first element, or a
  /// reference's own description.
  private func shape(of value: SecItemValue?) -> String {
    switch value {
    case nil: return "nothing"
    case .secret(let bytes)?: return "data:" + bytes.withBytes { String(decoding: $0, as: UTF8.self) }
    case .data(let bytes)?:
      return bytes.isEmpty ? "empty-data" : "ref\(bytes.count) \(String(decoding: bytes.prefix(4), as: UTF8.self))"
    case .dictionary(let members)?:
      return (["dictionary"] + ["acct", "class", "v_Data", "v_PersistentRef"].filter { members[$0] != nil })
        .joined(separator: " ")
    case .array(let values)?: return (["list \(values.count)"] + values.prefix(1).map(shape)).joined(separator: " of ")
    case .reference(let reference)?: return reference.description
    default: return "other"
    }
  }
}
