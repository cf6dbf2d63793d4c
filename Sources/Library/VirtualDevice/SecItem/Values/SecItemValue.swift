package import Basics
import KeychainFormats

/// The dictionary of a keychain call: Apple's short keys (`class`, `acct`, `r_Data`, …) and their values.
///
/// Source of the keys: Apple `SecItemConstants.c`.
package typealias SecItemQuery = [String: SecItemValue]

/// A value in the dictionary or the result of a keychain call.
///
/// Its description shows the type but not the value.
package indirect enum SecItemValue: Sendable, Equatable {
  /// `kCFNull`: no value. For `m_ValidOnDate` it means the current date.
  case null
  /// Text, compared by its UTF-8 bytes.
  case string(String)
  /// Bytes that are not secret.
  case data([UInt8])
  /// Secret bytes, such as `v_Data` in a result. In a query they count as data.
  case secret(SensitiveBytes)
  /// A whole number.
  case number(Int64)
  /// A floating-point number.
  case real(Double)
  /// A boolean, which is distinct from the numbers 0 and 1.
  case boolean(Bool)
  /// A date.
  case date(KeychainDate)
  /// A UUID of 16 bytes.
  case uuid([UInt8])
  /// An array of values, such as several results or the names of issuers.
  case array([SecItemValue])
  /// The attributes of a result.
  case dictionary(SecItemQuery)
  /// A certificate, a key or an identity.
  case reference(SecItemReference)
  /// An access control.
  case accessControl(AccessControl)
  /// An authentication context.
  case context(AuthenticationContext)

  package static func == (left: SecItemValue, right: SecItemValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.data(let left), .data(let right)), (.uuid(let left), .uuid(let right)): left == right
    case (.secret(let left), .secret(let right)): left.constantTimeEquals(right)
    case (.number(let left), .number(let right)): left == right
    case (.real(let left), .real(let right)): left == right
    case (.boolean(let left), .boolean(let right)): left == right
    case (.date(let left), .date(let right)): left == right
    case (.array(let left), .array(let right)): left == right
    case (.dictionary(let left), .dictionary(let right)): left == right
    case (.reference(let left), .reference(let right)): left == right
    case (.accessControl(let left), .accessControl(let right)): left == right
    case (.context(let left), .context(let right)): left == right
    default: false
    }
  }
}

extension SecItemValue {
  /// The text of a string; `nil` if the value has another type.
  package var stringValue: String? { if case .string(let value) = self { value } else { nil } }
  /// The whole number; `nil` if the value has another type, including booleans.
  package var numberValue: Int64? { if case .number(let value) = self { value } else { nil } }
  /// The boolean; `nil` if the value has another type, including numbers.
  package var booleanValue: Bool? { if case .boolean(let value) = self { value } else { nil } }
  /// The date; `nil` if the value has another type.
  package var dateValue: KeychainDate? { if case .date(let value) = self { value } else { nil } }
  /// The elements of an array; `nil` if the value has another type.
  package var arrayValue: [SecItemValue]? { if case .array(let value) = self { value } else { nil } }
  /// The entries of a dictionary; `nil` if the value has another type.
  package var dictionaryValue: SecItemQuery? { if case .dictionary(let value) = self { value } else { nil } }
  /// The certificate, key or identity of a reference; `nil` if the value has another type.
  package var referenceValue: SecItemReference? { if case .reference(let value) = self { value } else { nil } }
  /// The access control; `nil` if the value has another type.
  package var accessControlValue: AccessControl? { if case .accessControl(let value) = self { value } else { nil } }

  /// The bytes of data or a copy of secret bytes; `nil` if the value has another type.
  package var dataValue: [UInt8]? {
    switch self {
    case .data(let bytes): bytes
    case .secret(let bytes): bytes.withBytes { Array($0) }
    default: nil
    }
  }

  /// Data or secret bytes in memory that is overwritten when it is released; `nil` if the value has another type.
  var secretValue: SensitiveBytes? {
    switch self {
    case .data(let bytes): SensitiveBytes(copying: bytes)
    case .secret(let bytes): bytes
    default: nil
    }
  }

  /// The value of an attribute; `nil` if no attribute can have the value.
  var attributeValue: PropertyValue? {
    switch self {
    case .string(let value): .string(value)
    case .data(let bytes): .data(bytes)
    case .secret(let bytes): .data(bytes.withBytes { Array($0) })
    case .number(let value): .integer(value)
    case .real(let value): .real(value)
    case .boolean(let value): .boolean(value)
    case .date(let value): .date(value)
    case .uuid, .null, .array, .dictionary, .reference, .accessControl, .context: nil
    }
  }

  /// Creates a value of a call from an attribute's value; `nil` if no item can have the value.
  init?(_ value: PropertyValue) {
    switch value {
    case .boolean(let value): self = .boolean(value)
    case .integer(let value): self = .number(value)
    case .unsignedInteger(let value): self = .real(Double(value))
    case .real(let value): self = .real(value)
    case .date(let value): self = .date(value)
    case .data(let bytes): self = .data(bytes)
    case .string(let value): self = .string(value)
    case .array(let values): self = .array(values.compactMap(SecItemValue.init))
    case .null, .uid, .dictionary, .set: return nil
    }
  }
}

extension SecItemValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
  /// Creates text from a literal.
  package init(stringLiteral value: String) { self = .string(value) }
  /// Creates a number from a literal.
  package init(integerLiteral value: Int64) { self = .number(value) }
  /// Creates a boolean from a literal.
  package init(booleanLiteral value: Bool) { self = .boolean(value) }
}

extension SecItemValue: CustomStringConvertible, CustomReflectable {
  package var description: String {
    switch self {
    case .null: "<null>"
    case .string: "<text>"
    case .data(let bytes): "<\(bytes.count) bytes>"
    case .secret(let bytes): bytes.description
    case .number, .real: "<number>"
    case .boolean: "<boolean>"
    case .date: "<date>"
    case .uuid: "<uuid>"
    case .array(let values): "<\(values.count) values>"
    case .dictionary(let values): "<dictionary of \(values.count)>"
    case .reference(let reference): reference.description
    case .accessControl(let control): control.description
    case .context: "<authentication context>"
    }
  }

  package var customMirror: Mirror { Mirror(self, children: []) }
}
