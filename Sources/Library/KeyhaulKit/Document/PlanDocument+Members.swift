package import Backups
import KeychainFormats
import KeychainRules

extension PlanDocument {
  /// The remarks about a plan whose items come from another tool's dump.
  package struct Dump: Sendable, Equatable {
    /// The format of the dump (`DumpFormat`).
    package var format: String
    /// The sentence that states that nothing protected the items.
    package var sentence: String
    /// Unknown and assumed properties of the items, one sentence each.
    package var unknownProperties: [String]

    /// Creates the remarks about a dump.
    package init(format: String, sentence: String, unknownProperties: [String]) {
      self.format = format
      self.sentence = sentence
      self.unknownProperties = unknownProperties
    }
  }
}

extension PlanDocument {
  /// An anomaly of the backup.
  package struct Finding: Sendable, Equatable {
    /// The identifier, for programs (`BackupFinding.Kind`).
    package var id: String
    /// The file that contains the anomaly (`place` in JSON).
    package var file: String
    /// A sentence that describes the anomaly.
    package var detail: String
    /// Whether a part of the backup is lost.
    package var isLoss: Bool
    /// Whether the backup can be restored nevertheless.
    package var isRestorable: Bool

    /// Creates the finding of the document.
    package init(_ finding: BackupFinding) {
      id = finding.kind.rawValue
      file = finding.file
      detail = finding.fact
      isLoss = finding.isLoss
      isRestorable = !finding.blocks(.restoring)
    }
  }
}

extension PlanDocument {
  /// The names of an item. A name is absent if the item is encrypted or does not have it.
  package struct Identity: Sendable, Equatable {
    /// The kind, as in reports: `generic-password`, `internet-password`, `certificate` or `key`.
    package var kind: String
    /// The item's names. A descriptor can share its storage with the plan, so nothing is copied. Its kind and
    /// `isEncrypted` are not used.
    private var names: ItemDescriptor

    /// Creates the names of the document.
    package init(_ identity: ItemDescriptor) {
      kind = identity.kind.reportName
      names = identity
    }

    /// Creates an identity without names.
    init(kind: String) {
      self.kind = kind
      names = ItemDescriptor(undecryptable: .genericPassword)
    }

    /// The label.
    package var label: String? {
      get { names.label }
      set { names.label = newValue }
    }
    /// The account.
    package var account: String? {
      get { names.account }
      set { names.account = newValue }
    }
    /// The service.
    package var service: String? {
      get { names.service }
      set { names.service = newValue }
    }
    /// The server.
    package var server: String? {
      get { names.server }
      set { names.server = newValue }
    }
    /// The access group.
    package var accessGroup: String? {
      get { names.accessGroup }
      set { names.accessGroup = newValue }
    }

    /// Whether the item has no name except an access group. This is the case for every encrypted item.
    var isNameless: Bool { label == nil && account == nil && service == nil && server == nil }

    /// Returns whether both identities have the same kind and the same names.
    package static func == (left: Self, right: Self) -> Bool {
      left.kind == right.kind && left.label == right.label && left.account == right.account
        && left.service == right.service && left.server == right.server && left.accessGroup == right.accessGroup
    }
  }
}

extension PlanDocument {
  /// The items of the source device that are not in the backup, if the device was available.
  package struct NotInBackup: Sendable, Equatable {
    /// An item of the device.
    package struct Item: Sendable, Equatable {
      /// The item's names.
      package var identity: Identity
      /// The code of the protection class; `nil` if it is unknown.
      package var protection: String?
      /// The reason why no backup contains the item; `nil` if a new backup would contain it.
      package var reason: String?
    }

    /// The name of the device.
    package var device: String
    /// The revision of the device when the plan was made.
    package var revision: String
    /// Whether the backup's items prove that the device made it.
    package var isProven: Bool
    /// The number of items on the device.
    package var total: Int
    /// The number of items that the backup contains.
    package var includedCount: Int
    /// The number of included items that the device has changed since the backup.
    package var changedCount: Int
    /// The number of items that may be among the backup's encrypted items.
    package var possiblyIncludedCount: Int
    /// The number of items of the backup that the device no longer has.
    package var removedCount: Int
    /// The number of items that a rule excludes from every backup.
    package var neverIncludedCount: Int
    /// The number of items that no backup contains because their rows are damaged.
    package var unreadableCount: Int
    /// The number of items that were added after the backup.
    package var addedCount: Int
    /// The items that are not in the backup.
    package var items: [Item]

    /// Creates the member of the document.
    package init(_ sourceDeviceItems: SourceDeviceItems) {
      device = sourceDeviceItems.device
      revision = sourceDeviceItems.revision
      isProven = sourceDeviceItems.isProven
      total = sourceDeviceItems.total
      includedCount = sourceDeviceItems.includedCount
      changedCount = sourceDeviceItems.changedCount
      possiblyIncludedCount = sourceDeviceItems.possiblyIncludedCount
      removedCount = sourceDeviceItems.removedCount
      neverIncludedCount = sourceDeviceItems.neverIncluded.count
      unreadableCount = sourceDeviceItems.unreadable.count
      addedCount = sourceDeviceItems.addedSince.count
      items = sourceDeviceItems.absent.map {
        Item(identity: Identity($0.identity), protection: $0.protection?.rawValue, reason: $0.reason?.rawValue)
      }
    }
  }
}

extension PlanDocument.Finding {
  /// The finding without the details, which may contain a name from the backup.
  package var redacted: PlanDocument.Finding {
    var finding = self
    finding.detail = id
    return finding
  }
}
