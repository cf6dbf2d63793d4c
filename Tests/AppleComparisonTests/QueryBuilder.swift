import Foundation
import LocalAuthentication
import Security

/// An error for a row that cannot be run with this keychain.
struct NotRun: Error {
  let reason: String
}

/// Creates the dictionaries of calls from the table's query language, with public functions only.
///
/// A query is `class key=value …`. The keys are the values of Apple's constants. A value is text, or one of these
/// words:
///
/// - `#42` (an integer), `%1.5` (a fraction), `!true`, `!false` and `!null`
/// - `d:text` and `x:hex` (data), `@1000` (a date in seconds since 2001), `uuid:hex`
/// - `ac:ak:flag+flag` (an access control with its class and flags), `ctx:answer` (an authentication context)
/// - `[]` (an empty array), `[d]` (an array of data)
/// - `ref20` (the persistent reference of the first given item), `ref12` (the item's former reference with a row
///   number)
/// - `cert` (a certificate)
struct QueryBuilder {
  /// The persistent reference of the first given item.
  var reference: Data?
  /// Returns a context in which the user has given this answer.
  let contextForAnswer: (String) throws -> LAContext

  struct Unreadable: Error {
    let word: String
  }

  /// Returns the dictionary of a query.
  ///
  /// - Throws: `NotRun` if a value cannot be made with public functions, and `Unreadable` for a word that is not in the
  ///   language.
  func dictionary(_ text: String) throws -> [String: Any] {
    var query: [String: Any] = [:]
    for (index, word) in text.split(separator: " ").enumerated() {
      guard let equals = word.firstIndex(of: "=") else {
        guard index == 0 else { throw Unreadable(word: String(word)) }
        if word != "-" { query["class"] = String(word) }
        continue
      }
      // `{_}` is a space, which separates words otherwise: the protocol FTP is `ftp{_}`.
      let value = word[word.index(after: equals)...].replacingOccurrences(of: "{_}", with: " ")
      query[String(word[..<equals])] = try self.value(value)
    }
    // A real certificate has attributes, which are not valid for another class. The row needs one without attributes.
    if text.contains("v_Ref=cert"), query["class"] != nil {
      throw NotRun(reason: "a certificate without attributes")
    }
    return query
  }

  private func value(_ text: String) throws -> Any {
    func suffix(after prefix: String) -> String? { text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil }
    if let number = suffix(after: "#") { return NSNumber(value: try parsed(Int64(number), text)) }
    if let number = suffix(after: "%") { return NSNumber(value: try parsed(Double(number), text)) }
    if let date = suffix(after: "@") { return NSDate(timeIntervalSinceReferenceDate: try parsed(Double(date), text)) }
    if let text = suffix(after: "d:") { return Data(text.utf8) }
    if let hex = suffix(after: "x:") { return try data(hex: hex) }
    if let hex = suffix(after: "uuid:") { return try uuid(hex: hex) }
    if let answer = suffix(after: "ctx:") { return try context(answer) }
    if let control = suffix(after: "ac:") { return try accessControl(control) }
    switch text {
    case "!true": return try parsed(kCFBooleanTrue, text)
    case "!false": return try parsed(kCFBooleanFalse, text)
    case "!null": return NSNull()
    case "[]": return NSArray()
    case "[d]": return NSArray(array: [Data([0x30, 0])])
    case "ref20": return try parsed(reference, text)
    // The class in four bytes and the row number. The table's items are in the first row of their database.
    case "ref12": return try parsed(reference, text).prefix(4) + Data([0, 0, 0, 0, 0, 0, 0, 1])
    case "cert": return try certificate()
    default: return text
    }
  }

  /// Returns a parsed value, or throws `Unreadable` if the text could not be parsed.
  private func parsed<Value>(_ value: Value?, _ text: String) throws -> Value {
    guard let value else { throw Unreadable(word: text) }
    return value
  }

  private func data(hex: String) throws -> Data {
    let digits = Array(hex)
    guard digits.count.isMultiple(of: 2) else { throw Unreadable(word: hex) }
    return Data(
      try stride(from: 0, to: digits.count, by: 2).map {
        try parsed(UInt8(String(digits[$0...($0 + 1)]), radix: 16), hex)
      })
  }

  private func uuid(hex: String) throws -> Any {
    let text = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { range in
      String(hex.dropFirst(range.lowerBound).prefix(range.count))
    }.joined(separator: "-")
    #if canImport(Darwin)
      return try parsed(CFUUIDCreateFromString(nil, text as CFString), hex)
    #else
      return try parsed(NSUUID(uuidString: text), hex)
    #endif
  }

  private func context(_ answer: String) throws -> LAContext {
    let context = LAContext()
    if answer == "quiet" {
      context.interactionNotAllowed = true
      return context
    }
    if answer.hasPrefix("password-") {
      guard context.setCredential(Data(answer.utf8), type: .applicationPassword) else {
        throw NotRun(reason: "the context takes no application password")
      }
      return context
    }
    return try contextForAnswer(answer)
  }

  private static let flags: [String: SecAccessControlCreateFlags] = [
    "none": [], "presence": .userPresence, "biometry": .biometryAny, "current": .biometryCurrentSet,
    "passcode": .devicePasscode, "or": .or, "and": .and, "key": .privateKeyUsage, "password": .applicationPassword,
  ]

  private func accessControl(_ text: String) throws -> SecAccessControl {
    let parts = text.split(separator: ":").map(String.init)
    // `SecAccessControlCreateWithFlags` always adds constraints, even without flags.
    guard parts.count == 2, parts[1] != "ask-delete" else {
      throw NotRun(reason: "an access control without constraints or for deletion")
    }
    var flags: SecAccessControlCreateFlags = []
    for name in parts[1].split(separator: "+") { flags.insert(try parsed(Self.flags[String(name)], text)) }
    return try parsed(SecAccessControlCreateWithFlags(nil, parts[0] as CFString, flags, nil), text)
  }

  /// A self-signed certificate for example.org, whose key was discarded.
  private static let certificate = """
    MIIBgjCCASmgAwIBAgIUHjFzk/bRvs10rZV3ZpZdWmarg3MwCgYIKoZIzj0EAwIwFjEUMBIGA1UEAwwLZXhhbXBsZS5vcmcwIBcNMjYxMTMwMDEw\
    ODQzWhgPMjEyNjExMDYwMTA4NDNaMBYxFDASBgNVBAMMC2V4YW1wbGUub3JnMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEm4Jglnd7ZAaFIZV3\
    xgcrdeuy5qkj6XtAjOjcRE4KvRSXaY85vgDsdxkF5sPB7NJ+5qN1LdD4pI0LR7PmN0rYf6NTMFEwHQYDVR0OBBYEFKOVxAMeXc8KPK4hp5cs2cy/\
    XRwEMB8GA1UdIwQYMBaAFKOVxAMeXc8KPK4hp5cs2cy/XRwEMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgSgK4990AEzM6V6ed\
    DBWuo0JLh9s1AivzadUgdPZ6yu8CICoRKPw3c7UcUIG3SHumPHhDSY+hOh0u+727BslBPqc1
    """

  private func certificate() throws -> SecCertificate {
    let data = try parsed(Data(base64Encoded: Self.certificate), "cert")
    return try parsed(SecCertificateCreateWithData(nil, data as CFData), "cert")
  }
}
