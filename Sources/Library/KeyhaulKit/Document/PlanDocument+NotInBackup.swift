package import Basics
import KeychainFormats
import KeychainRules

extension PlanDocument {
  /// What the device that made the archive has and the archive has not, where the device was available.
  public struct NotInBackup: Sendable, Equatable {
    /// An item of the device.
    public struct Item: Sendable, Equatable {
      /// The item's names.
      public var identity: Identity
      /// The code of the protection class; `nil` where nothing says it.
      public var protection: String?
      /// Why no backup holds it; `nil` where one made now would.
      public var reason: String?
    }

    /// The name of the device.
    public var device: String
    /// Its revision when it was asked.
    public var revision: String
    /// Whether the archive's items prove that it made the archive.
    public var isProven: Bool
    /// How many items it has.
    public var total: Int
    /// How many of them the archive has.
    public var held: Int
    /// How many of these differ.
    public var changed: Int
    /// How many may be among the archive's items that do not open.
    public var doubtful: Int
    /// How many items of the archive it has no more.
    public var gone: Int
    /// How many of its items no backup holds, by a rule.
    public var never: Int
    /// How many of its rows are damaged.
    public var unreadable: Int
    /// How many of its items came after the archive was made.
    public var since: Int
    /// The items that the archive has not.
    public var items: [Item]

    /// Creates what the document says of the device's items.
    public init(_ maker: MakerItems) {
      device = maker.device
      revision = maker.revision
      isProven = maker.isProven
      (total, held, changed) = (maker.total, maker.heldCount, maker.changedCount)
      (doubtful, gone) = (maker.doubtfulCount, maker.goneCount)
      (never, unreadable, since) = (maker.never.count, maker.unreadable.count, maker.since.count)
      items = maker.absent.map {
        Item(identity: Identity($0.identity), protection: $0.protection?.rawValue, reason: $0.reason?.rawValue)
      }
    }
  }
}

extension PlanDocument.NotInBackup {
  package var json: JSONValue {
    [
      "device": .string(device), "revision": .string(revision), "proven": .boolean(isProven), "total": .count(total),
      "in_backup": .count(held), "changed": .count(changed), "doubtful": .count(doubtful), "gone": .count(gone),
      "never": .count(never), "unreadable": .count(unreadable), "since": .count(since),
      "items": .each(items) { item in
        .object(item.identity.fields + [("protection", .text(item.protection)), ("reason", .text(item.reason))])
      },
    ]
  }

  init(_ node: JSONNode) throws(JSONNode.Fault) {
    device = try node.member("device").string()
    revision = try node.member("revision").string()
    isProven = try node.member("proven").boolean()
    total = try node.member("total").count(from: 0)
    held = try node.member("in_backup").count(from: 0)
    changed = try node.member("changed").count(from: 0)
    doubtful = try node.member("doubtful").count(from: 0)
    gone = try node.member("gone").count(from: 0)
    never = try node.member("never").count(from: 0)
    unreadable = try node.member("unreadable").count(from: 0)
    since = try node.member("since").count(from: 0)
    items = []
    for element in try node.member("items").elements() {
      items.append(
        Item(
          identity: try PlanDocument.Identity(element),
          protection: try element.member("protection").optionalString(),
          reason: try element.member("reason").optionalString()))
    }
  }
}
