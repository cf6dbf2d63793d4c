import Backups
import Basics
import Explanations
import KeychainFormats
import KeyhaulKit

/// An item of a phone with its outcome in a move. It never contains the secret.
public struct MovedItem: Sendable {
  /// `kSecAttrLabel`; `nil` if the item has none or cannot be decrypted.
  public let label: String?
  /// `kSecAttrAccount`; `nil` if the item has none or cannot be decrypted.
  public let account: String?
  /// `kSecAttrService`; `nil` if the item has none or cannot be decrypted.
  public let service: String?
  /// `kSecAttrServer`; `nil` if the item has none or cannot be decrypted.
  public let server: String?
  /// `kSecAttrAccessGroup`; `nil` if the item has none or cannot be decrypted.
  public let accessGroup: String?
  /// The item's outcome in the move.
  public let fate: Fate
  /// The kind, the name and the protection class, such as `generic password "mail/anna" (when unlocked)`.
  let title: String

  /// The item's name for users: `service/account` or `server/account`, or one part if the item lacks the other. An item
  /// without these attributes has its label as its name. Empty if the item has no label either.
  public let name: String

  /// Creates an item from the decision of a plan.
  ///
  /// - Parameters:
  ///   - decision: The plan's decision about the item.
  ///   - isInBackup: Whether the item is in the backup.
  ///   - moveDescription: The move in words, such as "to a new phone from an encrypted backup".
  init(_ decision: MigrationPlan.Decision, isInBackup: Bool, moveDescription: String) {
    let identity = decision.identity
    label = identity.label
    account = identity.account
    service = identity.service
    server = identity.server
    accessGroup = identity.accessGroup
    name = identity.names.joined(separator: "/")
    let quotedName = name.isEmpty ? "without a name" : "\"\(UntrustedText.escaped(name))\""
    let protection = decision.protection.map { " (\($0.phrase))" } ?? ""
    title = "\(identity.kind.noun) \(quotedName)\(protection)"
    let kind: Fate.Kind =
      switch decision.outcome {
      case .migrates: .migrates
      case .staysBehind(let reason): isInBackup ? .staysBehind(reason) : .neverInBackup(reason)
      case .unreadable(let reason): .unreadable(reason)
      }
    fate = Fate(
      kind,
      details: Self.details(
        title: title, fate: Fate(kind), moveDescription: isInBackup ? moveDescription : nil, remark: decision.detail))
  }

  /// Returns the description of an outcome.
  ///
  /// - Parameters:
  ///   - title: The kind, the name and the protection class of the item.
  ///   - fate: The outcome.
  ///   - moveDescription: The move in words, or `nil` if the item is never in a backup.
  ///   - remark: The plan's detail about the item, or `nil` if there is none.
  private static func details(title: String, fate: Fate, moveDescription: String?, remark: String?) -> String {
    var lines = ["\(title) \(fate.verb)" + (moveDescription.map { " in a move \($0)" } ?? "")]
    if let reason = fate.reason {
      let explanation = reason.explanation
      lines.append("  why: \(reason.rawValue): \(explanation.headline)")
      if let remark { lines.append("       \(UntrustedText.escaped(remark, keepingEscapes: true))") }
      lines.append("  do:  \(explanation.action)")
    }
    return lines.joined(separator: "\n")
  }

  /// All names that a test may use for the item.
  var allNames: Set<String> {
    let names = [label, account, service, server].compactMap(\.self)
    let pairs = [service, server].compactMap(\.self).flatMap { location in
      account.map { ["\(location)/\($0)"] } ?? []
    }
    return Set(names + pairs)
  }
}

extension MovedItem: CustomStringConvertible {
  /// The description of the outcome: the item, the outcome, the reason and what to do.
  public var description: String { fate.description }
}
