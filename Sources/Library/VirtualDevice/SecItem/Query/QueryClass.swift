import Basics
import KeychainFormats

/// What the key `class` names: one of the four kinds of item, or the join of certificate and key.
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

  /// Whether items of the class are or have certificates, which the match keys for certificates are for.
  var hasCertificate: Bool { self == .identity || self == .items(.certificate) }

  /// Attributes that an identity takes from its certificate; the others are its key's.
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

/// What a persistent reference in a query points to.
enum QueryReference: Equatable {
  case row(Int64)
  case uuid([UInt8])
  case token(id: String, object: [UInt8])

  /// Reads the bytes of a `v_PersistentRef`: of one of the four kinds, or of an identity, which is that of its certificate.
  static func parse(_ bytes: [UInt8]) -> (className: String, reference: QueryReference)? {
    let isIdentity = bytes.starts(with: QueryClass.identityName.utf8)
    let bytes = isIdentity ? Array(ItemKind.certificate.rawValue.utf8) + bytes.dropFirst(4) : bytes
    guard let reference = try? PersistentReference(parsing: bytes) else { return nil }
    let name = isIdentity ? QueryClass.identityName : reference.kind.rawValue
    switch reference {
    case .rowID(_, let number): return (name, .row(number))
    case .uuid(_, let uuid): return (name, .uuid(uuid))
    case .token(_, let id, let object): return (name, .token(id: id, object: object))
    }
  }
}
