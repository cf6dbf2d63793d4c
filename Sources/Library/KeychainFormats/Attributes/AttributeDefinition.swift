/// One attribute of one kind of item.
public struct AttributeDefinition: Sendable, Hashable {
  /// The code, as the column and the blob spell it.
  public let code: AttributeCode
  /// How a value of the attribute is converted, stored and compared.
  public let kind: AttributeKind
  /// What the attribute takes part in: the primary key, the blob, the digest and the rest.
  public let flags: AttributeFlags
  /// The name Apple's headers give it, where they give it one.
  public let constantName: String?
}
