import KeychainFormats
import KeychainRules

/// The class of a query: one of the four kinds of items, or an identity, which joins a certificate and a key.
///
/// Source: Apple `SecItemConstants.c` (`kSecClass…`), `SecDbQuery.c` (`kc_class_with_name`).
enum QueryClass: Equatable {
  case items(ItemKind)
  case identity

  static let identityName = "idnt"

  init?(name: String) {
    if name == Self.identityName {
      self = .identity
    } else if let kind = ItemKind(rawValue: name) {
      self = .items(kind)
    } else {
      return nil
    }
  }

  var name: String {
    switch self {
    case .items(let kind): kind.rawValue
    case .identity: Self.identityName
    }
  }

  /// Whether items of the class are or contain certificates. Match keys for certificates require this.
  var hasCertificate: Bool { self == .identity || self == .items(.certificate) }

  /// The attributes of an identity that belong to its certificate. All other attributes belong to its key.
  static let certificateAttributes: Set<AttributeCode> = [
    .label, .issuer, .serialNumber, .subjectKeyID, .tokenID, .subject, .publicKeyHash, .certificateType,
    .certificateEncoding,
  ]

  func definition(of code: AttributeCode) -> AttributeDefinition? {
    switch self {
    case .items(let kind): AttributeTable.definition(of: code, in: kind)
    case .identity:
      AttributeTable.definition(of: code, in: Self.certificateAttributes.contains(code) ? .certificate : .key)
    }
  }
}

/// The target of a persistent reference in a query.
enum QueryReference: Equatable {
  case row(Int64)
  case uuid([UInt8])
  case token(id: String, objectID: [UInt8])

  /// Parses the bytes of a `v_PersistentRef`. An identity has the reference of its certificate, but with the
  /// class of identities.
  static func parse(_ bytes: [UInt8]) -> (className: String, reference: QueryReference)? {
    let isIdentity = bytes.starts(with: QueryClass.identityName.utf8)
    let bytes =
      isIdentity
      ? Array(ItemKind.certificate.rawValue.utf8) + bytes.dropFirst(PersistentReference.classByteCount) : bytes
    guard let reference = try? PersistentReference(parsing: bytes) else { return nil }
    let name = isIdentity ? QueryClass.identityName : reference.kind.rawValue
    switch reference {
    case .rowID(_, let rowID): return (name, .row(rowID))
    case .uuid(_, let uuid): return (name, .uuid(uuid))
    case .token(_, let id, let objectID): return (name, .token(id: id, objectID: objectID))
    }
  }
}
