import Basics
import Foundation
import KeychainFormats
import TestSupport

@testable import VirtualDevice

/// A row of `Fixtures/secitem-calls.csv`: a call on its own device.
struct SecItemCallRow: CustomStringConvertible, Sendable {
  let line: Int
  /// The call: `add`, `find`, `update` or `delete`.
  let call: String
  let app: String
  /// A lock state, and optionally `no-passcode`, `syncing` or the user's answer, separated by spaces.
  let conditions: [String]
  /// Queries for items that `mail`, or the app in `app>query`, has added before.
  let given: [String]
  let query: String
  let changes: String
  let status: Int32
  let result: String
  let rule: String

  var description: String { "line \(line): \(rule)" }

  static func all() throws -> [SecItemCallRow] {
    let table = Repository.root.appending(path: "Fixtures/secitem-calls.csv")
    let text = try String(contentsOf: table, encoding: .utf8)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    var rows: [SecItemCallRow] = []
    // The first line is the header.
    for (index, line) in lines.enumerated().dropFirst() where !line.isEmpty && !line.hasPrefix("#") {
      rows.append(try SecItemCallRow(String(line), number: index + 1))
    }
    return rows
  }

  private init(_ text: String, number: Int) throws {
    let fields = text.split(separator: ",", omittingEmptySubsequences: false).map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    guard fields.count == 9, let status = Int32(fields[6]) else { throw Malformed(line: number) }
    line = number
    call = fields[0]
    app = fields[1]
    conditions = fields[2].split(separator: " ").map(String.init)
    given = fields[3].split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
    query = fields[4]
    changes = fields[5]
    self.status = status
    result = fields[7]
    rule = fields[8]
  }

  struct Malformed: Error { let line: Int }
}

/// A parser for the table's query language: `class key=value …`. A value is text, `#42`, `%1.5`, `!true`, `!false`,
/// `!null`, `d:text` (data), `x:hex` (data), `@1000` (a date), `uuid:hex`, `ac:ak:flag+flag`, `ctx:answer`, `ref20` or
/// `ref12` (of the first given item), or `cert` (a reference to a certificate).
struct SecItemQueryReader {
  /// The 20 bytes of the first given item's persistent reference.
  var reference: [UInt8] = []

  struct Unreadable: Error { let word: String }

  func query(_ text: String) throws -> SecItemQuery {
    var query: SecItemQuery = [:]
    for (index, word) in text.split(separator: " ").enumerated() {
      guard let equals = word.firstIndex(of: "=") else {
        guard index == 0 else { throw Unreadable(word: String(word)) }
        if word != "-" { query["class"] = .string(String(word)) }
        continue
      }
      // The values of protocols are padded with spaces, which are written as `{_}` here.
      let text = word[word.index(after: equals)...].replacingOccurrences(of: "{_}", with: " ")
      query[String(word[..<equals])] = try value(text)
    }
    return query
  }

  private func value(_ text: String) throws -> SecItemValue {
    func suffix(after prefix: String) -> String? { text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil }
    if let number = suffix(after: "#") { return .number(try parsed(Int64(number), text)) }
    if let number = suffix(after: "%") { return .real(try parsed(Double(number), text)) }
    if let date = suffix(after: "@") { return .date(try parsed(Double(date), text)) }
    if let text = suffix(after: "d:") { return .data(Array(text.utf8)) }
    if let hex = suffix(after: "x:") { return .data(try [UInt8](hex: hex)) }
    if let hex = suffix(after: "uuid:") { return .uuid(try [UInt8](hex: hex)) }
    if let text = suffix(after: "ctx:") { return .context(try context(text)) }
    if let text = suffix(after: "ac:") { return .accessControl(try accessControl(text)) }
    switch text {
    case "!true": return .boolean(true)
    case "!false": return .boolean(false)
    case "!null": return .null
    case "[]": return .array([])
    case "[d]": return .array([.data([0x30, 0])])
    // The current and the older form of a reference. The older one ends in a row number.
    case "ref20": return .data(reference)
    case "ref12": return .data(Array(reference.prefix(4)) + [0, 0, 0, 0, 0, 0, 0, 1])
    case "cert": return .reference(.certificate(KeychainItem(kind: .certificate)))
    default: return .string(text)
    }
  }

  private func parsed<Value>(_ value: Value?, _ text: String) throws -> Value {
    guard let value else { throw Unreadable(word: text) }
    return value
  }

  private func context(_ text: String) throws -> AuthenticationContext {
    if text == "quiet" { return AuthenticationContext(isInteractionAllowed: false) }
    if text.hasPrefix("password-") {
      return AuthenticationContext(applicationPassword: SensitiveBytes(copying: Array(text.utf8)))
    }
    return AuthenticationContext(outcome: try parsed(AuthenticationOutcome(rawValue: text), text))
  }

  private static let flags: [String: AccessControlFlags] = [
    "none": [], "presence": .userPresence, "biometry": .biometryAny, "current": .biometryCurrentSet,
    "passcode": .devicePasscode, "or": .or, "and": .and, "key": .privateKeyUsage, "password": .applicationPassword,
  ]

  /// Parses an access control, such as `ak`, which has no constraints, `ak:presence+password`, or `ak:ask-delete`,
  /// which restricts deletion.
  private func accessControl(_ text: String) throws -> AccessControl {
    let parts = text.split(separator: ":").map(String.init)
    let protection = try parsed(ProtectionClass(rawValue: parts[0]), text)
    guard parts.count > 1 else { return AccessControl(protection: protection) }
    if parts[1] == "ask-delete" {
      // Decryption and encryption are allowed, and deletion requires the passcode.
      return AccessControl(
        protection: protection,
        operations: ["od": .boolean(true), "oe": .boolean(true), "odel": .dictionary(["cup": .boolean(true)])])
    }
    var flags: AccessControlFlags = []
    for name in parts[1].split(separator: "+") { flags.insert(try parsed(Self.flags[String(name)], text)) }
    return try AccessControl(protection: protection, flags: flags)
  }
}
