package import KeyhaulKit

/// A list of keychain items (`keychain-items/1`).
package struct ItemDocument {
  /// The kind of source, "device" or "archive", and its name.
  package let source: (kind: String, name: String)
  /// Whether the document contains secrets.
  package let revealsSecrets: Bool
  /// Whether to omit the secrets of items that require authentication. `false` for a dump,
  /// which contains them in plain text.
  package let omitsProtectedSecrets: Bool

  package init(
    source: (kind: String, name: String), revealsSecrets: Bool, omitsProtectedSecrets: Bool = true
  ) {
    self.source = source
    self.revealsSecrets = revealsSecrets
    self.omitsProtectedSecrets = omitsProtectedSecrets
  }

  /// Returns the start of the document. The caller adds the object of each item, then the members of the command.
  package func stream() -> JSONStream {
    let sourceJSON: JSONValue = ["kind": .string(source.kind), "name": .string(source.name)]
    return JSONStream(["format": "keychain-items/1", "source": sourceJSON, "items": []])
  }

  /// Returns the object of an item.
  ///
  /// - Parameters:
  ///   - entry: The item.
  ///   - statesSecret: Whether to state if the secret is known, as in documents about a dump.
  package func object(_ entry: KeychainEntry, statesSecret: Bool = false) -> JSONValue {
    var fields: [(String, JSONValue)] = entry.index.map { [("index", .count($0))] } ?? []
    fields += [
      ("kind", .string(entry.kind.reportName)), ("table", .string(entry.kind.rawValue)),
      ("protection", .text(entry.protection?.rawValue)),
    ]
    guard let item = entry.readablePart else {
      fields.append(("readable", false))
      if let reason = entry.reason { fields.append(("reason", .string(reason.rawValue))) }
      if let detail = entry.reasonDetail { fields.append(("detail", .string(detail))) }
      return .object(fields)
    }
    fields.append(("readable", true))
    fields.append(("attributes", Self.attributes(of: item)))
    if statesSecret { fields.append(("has_secret", .boolean(entry.isSecretReadable))) }
    if revealsSecrets, !(omitsProtectedSecrets && item.requiresAuthentication), let secret = item.secret {
      fields.append(("secret", Self.secret(secret)))
    }
    return .object(fields)
  }

  /// Returns the attributes of an item: first the attributes of Apple's schema, in the schema's order, then all others by
  /// name.
  private static func attributes(of item: KeychainItem) -> JSONValue {
    let schemaCodes = AttributeTable.definitions(of: item.kind).map(\.code).filter { item[$0] != nil }
    let otherCodes = Set(item.attributes.keys).subtracting(schemaCodes).sorted()
    return .object((schemaCodes + otherCodes).compactMap { code in item[code].map { (code.rawValue, value($0)) } })
  }

  /// Returns a value in JSON: dates are in UTC with their complete fraction, data is in base64.
  package static func value(_ value: PropertyValue) -> JSONValue {
    switch value {
    case .null: .null
    case .boolean(let flag): .boolean(flag)
    case .integer(let number): .integer(number)
    case .unsignedInteger(let number): .string(String(number))
    case .real(let number): .number(number)
    case .date(let date) where (Timestamp.earliest...Timestamp.latest).contains(date.secondsSinceReferenceDate):
      .string(Timestamp.text(of: date))
    // RFC 3339 cannot express this date.
    case .date(let date): ["seconds": .string("\(date.secondsSinceReferenceDate)")]
    case .data(let bytes): ["base64": .string(Base64Digits.text(of: bytes))]
    case .string(let text): .string(text)
    case .uid(let number): .string(String(number))
    case .array(let elements), .set(let elements): .array(elements.map(Self.value))
    case .dictionary(let dictionary):
      .object(dictionary.entries.map { ($0.key.stringValue ?? "\($0.key)", Self.value($0.value)) })
    }
  }

  /// Returns a secret in base64, and also as text if it is valid UTF-8. The bytes are not copied to unprotected memory.
  private static func secret(_ secret: SensitiveBytes) -> JSONValue {
    var fields: [(String, JSONValue)] = [("base64", .sensitive(secret, .base64))]
    if secret.withBytes({ UTF8Scalars.isValid($0) }) { fields.append(("text", .sensitive(secret, .text))) }
    return .object(fields)
  }
}

extension KeychainItem {
  /// Whether an access control protects the secret. A virtual device has no user who could authenticate.
  package var requiresAuthentication: Bool { self[.accessControl]?.dictionaryValue != nil }
}
