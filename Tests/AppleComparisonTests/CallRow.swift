import Foundation

/// A row of `Fixtures/secitem-calls.csv`: a keychain call with its expected status.
struct CallRow: Sendable {
  /// The number of the line in the table, from 1.
  let line: Int
  /// The call: `add`, `find`, `update` or `delete`.
  let call: String
  /// The app that makes the call.
  let app: String
  /// The conditions of the device and the user's answer, such as `locked` or `allow`.
  let conditions: [String]
  /// The queries of the items that exist before the call.
  let given: [String]
  var query: String
  let changes: String
  /// The status that the call must return.
  var status: Int32
  /// The shape of the result, or an empty string if it is not checked.
  var result: String
  /// The rule that the call shows.
  let rule: String

  /// The queries and the changes as one text.
  var queries: String { (given + [query, changes]).joined(separator: " ") }

  struct Malformed: Error {
    let line: Int
  }

  /// Reads the rows of a table.
  ///
  /// - Throws: `Malformed` with the first line that is not a call.
  static func rows(of text: String) throws -> [CallRow] {
    try text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { index, line in
      guard index > 0, !line.isEmpty, !line.hasPrefix("#") else { return nil }
      let fields = line.split(separator: ",", omittingEmptySubsequences: false).map {
        $0.trimmingCharacters(in: .whitespaces)
      }
      guard fields.count == 9, let status = Int32(fields[6]) else { throw Malformed(line: index + 1) }
      return CallRow(
        line: index + 1, call: fields[0], app: fields[1],
        conditions: fields[2].split(separator: " ").map(String.init),
        given: fields[3].split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }, query: fields[4],
        changes: fields[5], status: status, result: fields[7], rule: fields[8])
    }
  }

  /// Reads the table in `KEYHAUL_CALLS_TABLE`, in the test bundle, or beside this folder, whichever exists first.
  static func table(_ file: String = #filePath) throws -> [CallRow] {
    let repository = URL(fileURLWithPath: file).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    var location = repository.appendingPathComponent("Fixtures/secitem-calls.csv")
    #if canImport(Darwin)
      let copies = Bundle.allBundles.compactMap { $0.url(forResource: "secitem-calls", withExtension: "csv") }
      if let copy = copies.first { location = copy }
    #endif
    if let path = ProcessInfo.processInfo.environment["KEYHAUL_CALLS_TABLE"] { location = URL(fileURLWithPath: path) }
    return try rows(of: String(contentsOf: location, encoding: .utf8))
  }
}
