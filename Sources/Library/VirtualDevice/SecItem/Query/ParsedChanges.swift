import Basics
import KeychainFormats
import KeychainRules

/// The changes of an update. Every key is an attribute of the class, or the secret.
///
/// Source: Apple `SecDbQuery.c` (`query_update_applier`).
struct ParsedChanges {
  private(set) var changes = ItemChanges()

  /// Parses the changes.
  ///
  /// - Throws: `.noSuchAttribute` for a key that is not an attribute of the class, `.parameter` for an invalid value
  ///   and for attributes that no app can change.
  init(_ changes: SecItemQuery, for queryClass: QueryClass) throws(SecItemError) {
    var parsed = ParsedQuery(queryClass)
    // `musr` (`kSecAttrMultiUser`) is ignored. `nleg` (`kSecUseDataProtectionKeychain`) looks like an attribute, but
    // chooses between the keychains of a Mac.
    for (key, value) in changes.sorted(by: { $0.key < $1.key }) where key != "musr" && key != "nleg" {
      try parse(key, value, queryClass, &parsed)
    }
    try parsed.checkProtection()
    // An access control contains its protection class. A new class without an access control removes the access
    // control.
    if let control = parsed.accessControl {
      self.changes.attributes[.protection] = .string(control.protection.rawValue)
      self.changes.attributes[.accessControl] = control.operations.map { .dictionary($0) } ?? .null
      if control.isConstrained, parsed.isSynchronizable {
        throw SecItemError(.parameter, "a synchronized item cannot have an access control")
      }
    } else if parsed.attributes[.protection] != nil {
      self.changes.attributes[.accessControl] = .null
    }
  }

  var accessGroup: String? { changes.attributes[.accessGroup]?.stringValue }
  var makesSynchronizable: Bool { changes.attributes[.synchronizable] == .integer(1) }

  private mutating func parse(
    _ key: String, _ value: SecItemValue, _ queryClass: QueryClass, _ parsed: inout ParsedQuery
  ) throws(SecItemError) {
    if key == "v_Data" {
      guard let secret = value.secretValue else { throw SecItemError(.parameter, "v_Data is not data") }
      changes.secrets[.valueData] = secret
      return
    }
    let code = AttributeCode(rawValue: key)
    guard let definition = queryClass.definition(of: code) else {
      throw SecItemError(.noSuchAttribute, "the class \(queryClass.name) has no such attribute to change")
    }
    if ItemChanges.refusedCodes.contains(code) {
      throw SecItemError(.parameter, "an app cannot change \(key)")
    }
    // `kSecAttrSynchronizableAny` is not a value that an item can have.
    if code == .synchronizable, value.stringValue == "syna" { return }
    if definition.kind == .accessControl {
      guard let control = value.accessControlValue else {
        throw SecItemError(.parameter, "accc is not an access control")
      }
      parsed.accessControl = control
      return
    }
    let converted = try AttributeConversion.converted(value, for: definition)
    if definition.flags.contains(.returnedAsData) {
      changes.secrets[code] = SensitiveBytes(copying: converted.dataValue ?? [])
      return
    }
    changes.attributes[code] = converted
    parsed.attributes[code] = converted
  }
}
