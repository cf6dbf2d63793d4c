public import Backups
import Basics
import KeychainFormats

extension PlanDocument {
  /// The names of an item, each absent where it is sealed or has none.
  public struct Identity: Sendable, Equatable {
    /// The kind, as reports name it: `generic-password`, `internet-password`, `certificate` or `key`.
    public var kind: String
    /// The plan's own, of which no name is copied. What kind it says, and whether it is sealed, count for nothing here.
    private var names: ItemIdentity

    /// Creates the names as the document has them.
    public init(_ identity: ItemIdentity) {
      kind = identity.kind.reportName
      names = identity
    }

    /// None yet of an item of a kind.
    init(kind: String) {
      self.kind = kind
      names = ItemIdentity(sealed: .genericPassword)
    }

    /// The label.
    public var label: String? {
      get { names.label }
      set { names.label = newValue }
    }
    /// The account.
    public var account: String? {
      get { names.account }
      set { names.account = newValue }
    }
    /// The service.
    public var service: String? {
      get { names.service }
      set { names.service = newValue }
    }
    /// The server.
    public var server: String? {
      get { names.server }
      set { names.server = newValue }
    }
    /// The access group.
    public var accessGroup: String? {
      get { names.accessGroup }
      set { names.accessGroup = newValue }
    }

    var isSealed: Bool { label == nil && account == nil && service == nil && server == nil }

    /// Whether both have the same kind and the same names.
    public static func == (left: Self, right: Self) -> Bool {
      left.kind == right.kind && left.label == right.label && left.account == right.account
        && left.service == right.service && left.server == right.server && left.accessGroup == right.accessGroup
    }
  }
}
