import Basics

/// The access control of a database item (`SecAccessControl`): its protection class, and its constraints if it has any.
///
/// It is a DER dictionary. No public header names the constraints (`AccessOperation`, `AccessConstraintCode`), so all
/// members are preserved unchanged.
///
/// Source: Apple `SecAccessControl.m`.
package struct ItemAccessControl: Sendable, Hashable {
  /// All members, in their original order.
  package let members: PropertyDictionary

  /// The key of the protection class.
  package static let protectionKey = "prot"
  /// The key of the constraints.
  package static let constraintsKey = "acl"
  private static let boundKey = "bound"

  /// Creates an access control with only a protection class, as for an item that was added without constraints.
  package init(protection: ProtectionClass) { members = [Self.protectionKey: .string(protection.rawValue)] }

  /// Creates an access control from its members.
  ///
  /// - Throws: `.malformed` if there is no protection class, or if a known member has the wrong type.
  package init(members: PropertyDictionary) throws(FormatError) {
    switch members[Self.protectionKey] {
    // For an item on a token, the protection class is a dictionary.
    case .string?, .dictionary?: break
    default: throw Self.malformed("it has no protection class")
    }
    switch members[Self.constraintsKey] {
    case nil, .dictionary?: break
    default: throw Self.malformed("its constraints are not a dictionary")
    }
    switch members[Self.boundKey] {
    case nil, .boolean?: break
    default: throw Self.malformed("its bound member is not a boolean")
    }
    self.members = members
  }

  /// Reads the `SecAccessControl` value of an item.
  ///
  /// - Throws: `.malformed`, `.truncated`, `.overLimit` or `.trailingBytes`.
  package init(parsing bytes: [UInt8]) throws(FormatError) {
    guard case .dictionary(let members) = try DERPropertyList.decode(bytes) else {
      throw Self.malformed("it is not a dictionary")
    }
    try self.init(members: members)
  }

  /// Returns the `SecAccessControl` value of an item.
  ///
  /// - Throws: `.unencodable` for a member that DER cannot represent.
  package func serialized() throws(FormatError) -> [UInt8] { try DERPropertyList.encode(.dictionary(members)) }

  /// The stored code of the protection class, such as `ak`, or `nil` if the item has a token's protection.
  package var protectionCode: String? { members[Self.protectionKey]?.stringValue }
  /// The constraints by operation, or `nil` if there are none.
  package var constraints: PropertyDictionary? { members[Self.constraintsKey]?.dictionaryValue }
  /// Whether the access control is marked as bound.
  package var isBound: Bool { members[Self.boundKey]?.booleanValue ?? false }

  private static func malformed(_ reason: String) -> FormatError {
    FormatError(.accessControl, .malformed, reason)
  }
}
