import Basics
import KeychainCrypto
import KeychainFormats

/// The four calls, where their queries differ.
enum SecItemCall { case add, copyMatching, update, delete }

/// What a query says, checked and converted.
///
/// Source: Apple `SecDbQuery.c` (`query_applier` and the functions it calls).
struct ParsedQuery {
  struct ReturnTypes: OptionSet {
    let rawValue: UInt8
    static let data = ReturnTypes(rawValue: 1)
    static let attributes = ReturnTypes(rawValue: 2)
    static let reference = ReturnTypes(rawValue: 4)
    static let persistentReference = ReturnTypes(rawValue: 8)
  }

  enum Limit: Equatable {
    case one, all
    case atMost(Int)
  }

  /// Whether the person may be asked.
  enum Interaction { case allowed, forbidden, skipped }

  let queryClass: QueryClass
  /// Converted. Everything here is compared in a search.
  var attributes: AttributeMap<PropertyValue> = [:]
  var secrets: AttributeMap<SensitiveBytes> = [:]
  var accessControl: AccessControl?
  var mentionsSynchronizable = false
  var returns: ReturnTypes = []
  var limit = Limit.one
  var matches = MatchConditions()
  var reference: QueryReference?
  /// `u_Tomb`: whether a deletion leaves a tombstone, whatever the item is.
  var usesTombstone: Bool?
  var interaction = Interaction.allowed
  var context: AuthenticationContext?
  var prompt: String?
  /// `u_TokenRawItems`: the bytes of token items as they are stored.
  var wantsRawTokenItems = false
  /// `toid`: what a token calls the object, where an item on a token is added.
  var tokenObjectID: [UInt8]?

  init(_ queryClass: QueryClass) { self.queryClass = queryClass }

  var protection: ProtectionClass? { attributes[.protection]?.stringValue.flatMap(ProtectionClass.init(rawValue:)) }
  var isSynchronizable: Bool { attributes[.synchronizable] == .integer(1) }
  var accessGroup: String? { attributes[.accessGroup]?.stringValue }

  var kind: ItemKind? { if case .items(let kind) = queryClass { kind } else { nil } }
}

/// The match keys of a query.
struct MatchConditions {
  /// How many keys with `m_` there were, `m_Limit` among them.
  var count = 0
  /// `m_HostOrSubdomainOfHost`.
  var host: String?
  /// `m_EmailAddressIfPresent`.
  var emailAddress: String?
  /// `m_Issuers`: DER names.
  var issuers: [[UInt8]]?
  var hasPolicy = false
  /// `m_ValidOnDate`.
  var validDate: KeychainDate?
  var isTrustedOnly = false

  /// Whether rows are looked at one by one, so that the limit cannot be left to the database.
  var filters: Bool { host != nil || emailAddress != nil || issuers != nil || validDate != nil || isTrustedOnly }
}
