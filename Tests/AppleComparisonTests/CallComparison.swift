import Foundation
import Security

/// The comparison of the table with a keychain.
struct CallComparison {
  struct Difference {
    let row: CallRow
    /// The status and the result, or the reason why there are none.
    let received: String
  }

  let keychainName: String
  let rowCount: Int
  private(set) var differences: [Difference] = []
  /// The lines of the rows that were not run, by reason.
  private(set) var notRunLines: [String: [Int]] = [:]

  var notRunCount: Int { notRunLines.values.reduce(0) { $0 + $1.count } }

  /// Runs the rows of a table with a keychain. Afterwards the keychain is cleaned, even if a row fails.
  ///
  /// - Throws: The error of a row that cannot be read or run, or an error if the keychain cannot be emptied.
  init(of rows: [CallRow], with keychain: some ComparedKeychain) throws {
    keychainName = keychain.name
    rowCount = rows.count
    var keychain = keychain
    var failure: (any Error)?
    for row in rows {
      do {
        if let requirement = keychain.missingRequirement(of: row) { throw NotRun(reason: requirement) }
        try keychain.prepare(for: row)
        if let received = try Self.difference(of: row, with: keychain) {
          differences.append(Difference(row: row, received: received))
        }
      } catch let error as NotRun {
        notRunLines[error.reason, default: []].append(row.line)
      } catch {
        failure = error
        break
      }
    }
    try keychain.clean()
    if let failure { throw failure }
  }

  /// Makes the call of a row, and compares its status and result with the row.
  ///
  /// - Returns: The received status and result, or `nil` if they are as expected.
  private static func difference(of row: CallRow, with keychain: some ComparedKeychain) throws -> String? {
    var builder = QueryBuilder(contextForAnswer: keychain.context)
    for givenItem in row.given {
      let status = try add(givenItem, to: keychain, &builder)
      guard status == errSecSuccess else { return "status \(status) for an item before the call" }
    }
    try keychain.enterConditions(of: row)
    var result: CFTypeRef?
    let status = try keychain.run(as: row.app) {
      let query = try builder.dictionary(keychain.withGroups(row.query)) as CFDictionary
      switch row.call {
      case "add": return SecItemAdd(query, &result)
      case "find": return SecItemCopyMatching(query, &result)
      case "update":
        return SecItemUpdate(query, try builder.dictionary(keychain.withGroups(row.changes)) as CFDictionary)
      default: return SecItemDelete(query)
      }
    }
    let shape = ResultShape(row).text(of: result)
    let isExpected = status == row.status && (row.result.isEmpty || shape == row.result)
    return isExpected ? nil : Self.outcome(status, shape)
  }

  /// Adds an item that exists before a row's call. The app `mail` adds the item, or the app in front of a `>`, as in
  /// `shop>genp acct=a`.
  private static func add(
    _ text: String, to keychain: some ComparedKeychain, _ builder: inout QueryBuilder
  ) throws -> OSStatus {
    let parts = text.split(separator: ">", maxSplits: 1).map(String.init)
    let app = parts.count > 1 ? parts[0] : "mail"
    let query = parts[parts.count - 1]
    let itemBuilder = builder
    var result: CFTypeRef?
    let status = try keychain.run(as: app) {
      var item = try itemBuilder.dictionary(keychain.withGroups(query))
      item[kSecReturnPersistentRef as String] = true
      return SecItemAdd(item as CFDictionary, &result)
    }
    if status == errSecSuccess, builder.reference == nil { builder.reference = result as? Data }
    return status
  }

  private static func outcome(_ status: OSStatus, _ result: String) -> String {
    "status \(status)" + (result.isEmpty ? "" : ", \(result)")
  }

  /// The report as text. It contains the table's own texts, statuses and shapes of results, but no item's data and no
  /// access group.
  var report: String {
    var lines = [
      "Keychain calls of secitem-calls.csv, compared with \(keychainName)",
      "System: \(ProcessInfo.processInfo.operatingSystemVersionString)",
      "\(rowCount) calls: \(rowCount - notRunCount - differences.count) as expected, \(differences.count) different, "
        + "\(notRunCount) not run",
    ]
    for (reason, rows) in notRunLines.sorted(by: { ($1.value.count, $0.key) < ($0.value.count, $1.key) }) {
      lines.append("  not run: \(rows.count), \(reason): lines \(rows.map(String.init).joined(separator: " "))")
    }
    for difference in differences {
      let row = difference.row
      lines += [
        "line \(row.line): \(row.rule)",
        "  call: \(row.call) as \(row.app)\(row.conditions.map { ", \($0)" }.joined()): \(row.query)"
          + (row.changes.isEmpty ? "" : " with \(row.changes)"),
      ]
      if !row.given.isEmpty { lines.append("  before: \(row.given.joined(separator: " | "))") }
      lines += ["  expected: \(Self.outcome(row.status, row.result))", "  received: \(difference.received)"]
    }
    return lines.joined(separator: "\n") + "\n"
  }
}

/// Describes the result of a call in the words of the table, without the data of items.
struct ResultShape {
  /// The texts that the row itself stores.
  private let storedTexts: Set<String>
  private let isReference: Bool

  init(_ row: CallRow) {
    let words = row.queries.split(separator: " ")
    storedTexts = Set(words.compactMap { word in word.range(of: "=d:").map { String(word[$0.upperBound...]) } })
    isReference = row.query.contains("r_PersistentRef=!true")
  }

  /// Returns `nothing`, `data:text` of the row, `empty-data`, `ref20 genp`, `dictionary` with its special keys, a
  /// reference such as `<key>`, or `list` with a count and the shape of the first element.
  func text(of value: CFTypeRef?) -> String {
    guard let value else { return "nothing" }
    switch CFGetTypeID(value) {
    case CFDataGetTypeID(): return text(ofData: value as? Data ?? Data())
    case CFDictionaryGetTypeID():
      let members = value as? [String: Any] ?? [:]
      return (["dictionary"] + ["acct", "class", "v_Data", "v_PersistentRef"].filter { members[$0] != nil })
        .joined(separator: " ")
    case CFArrayGetTypeID():
      let values = value as? NSArray ?? []
      let count = "list \(values.count)"
      guard let firstElement = values.firstObject else { return count }
      return "\(count) of \(text(of: firstElement as CFTypeRef))"
    case SecKeyGetTypeID(): return "<key>"
    case SecCertificateGetTypeID(): return "<certificate>"
    case SecIdentityGetTypeID(): return "<identity>"
    default: return "another type"
    }
  }

  private func text(ofData data: Data) -> String {
    let start = String(decoding: data.prefix(4), as: UTF8.self)
    if isReference, ["genp", "inet", "cert", "keys", "idnt"].contains(start) { return "ref\(data.count) \(start)" }
    if data.isEmpty { return "empty-data" }
    let text = String(decoding: data, as: UTF8.self)
    return storedTexts.contains(text) ? "data:\(text)" : "data of \(data.count) bytes"
  }
}
