import Basics

/// The access control of a database's item (`SecAccessControl`): its protection class, and constraints where it has some.
///
/// A DER dictionary. What the constraints are called is in no public header; all members are kept as they came.
/// Source: Apple `SecAccessControl.m`.
public struct ItemAccessControl: Sendable, Hashable {
  /// All members, in the order in which they were read.
  public let members: PropertyDictionary

  private static let protectionKey = "prot"
  private static let constraintsKey = "acl"
  private static let boundKey = "bound"

  /// Creates an access control that names a class and nothing else, as an item has that was added with one.
  public init(protection: ProtectionClass) { members = [Self.protectionKey: .string(protection.rawValue)] }

  /// Creates an access control of its members.
  ///
  /// - Throws: `.malformed` for members of another kind.
  public init(members: PropertyDictionary) throws(FormatError) {
    switch members[Self.protectionKey] {
    // Of an item of a token it is a dictionary.
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

  /// Reads the value of an item's `SecAccessControl`.
  ///
  /// - Throws: `.malformed`, `.truncated`, `.overLimit` or `.trailingBytes`.
  public init(parsing bytes: [UInt8]) throws(FormatError) {
    guard case .dictionary(let members) = try DERPropertyList.decode(bytes) else {
      throw Self.malformed("it is not a dictionary")
    }
    try self.init(members: members)
  }

  /// The value of an item's `SecAccessControl`.
  ///
  /// - Throws: `.unencodable` for a member that DER has no form for.
  public func serialized() throws(FormatError) -> [UInt8] { try DERPropertyList.encode(.dictionary(members)) }

  /// The code of the protection class as stored, `ak` for example; `nil` if the item has a token's protection instead.
  public var protectionCode: String? { members[Self.protectionKey]?.stringValue }
  /// The constraints by operation; `nil` if it has none.
  public var constraints: PropertyDictionary? { members[Self.constraintsKey]?.dictionaryValue }
  /// Whether it says that the item is bound.
  public var isBound: Bool { members[Self.boundKey]?.booleanValue ?? false }

  private static func malformed(_ reason: String) -> FormatError {
    FormatError(.accessControl, .malformed, reason)
  }
}
