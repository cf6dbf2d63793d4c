import Backups
import Basics
import KeychainFormats
import KeyhaulKit
import Reports

/// One item of a phone and what becomes of it in a move. Never its secret.
public struct MovedItem: Sendable {
  /// `kSecAttrLabel`; `nil` if the item has none or does not open, like the other names.
  public let label: String?
  /// `kSecAttrAccount`.
  public let account: String?
  /// `kSecAttrService`.
  public let service: String?
  /// `kSecAttrServer`.
  public let server: String?
  /// `kSecAttrAccessGroup`.
  public let accessGroup: String?
  /// What becomes of it.
  public let fate: Fate
  /// Its kind, its name and its protection class: `generic password "mail/anna" (when unlocked)`.
  let title: String

  /// What a person knows it by: `service/account`, `server/account`, or one of the two where it has no other; else its
  /// label. Empty where it has no names.
  public let name: String

  /// - Parameters:
  ///   - isInBackup: Whether the backup would hold it.
  ///   - way: The move in words, for the story: "to a new phone from an encrypted backup".
  init(_ decision: MigrationPlan.Decision, isInBackup: Bool, way: String) {
    let identity = decision.identity
    label = identity.label
    account = identity.account
    service = identity.service
    server = identity.server
    accessGroup = identity.accessGroup
    name = identity.names.joined(separator: "/")
    let called = name.isEmpty ? "without a name" : "\"\(UntrustedText.escaped(name))\""
    let protection = decision.protection.map { " (\($0.phrase))" } ?? ""
    title = "\(identity.kind.noun) \(called)\(protection)"
    let kind: Fate.Kind =
      switch decision.outcome {
      case .migrates: .migrates
      case .staysBehind(let reason): isInBackup ? .staysBehind(reason) : .neverInBackup(reason)
      case .unreadable(let reason): .unreadable(reason)
      }
    fate = Fate(kind, story: Self.story(title, Fate(kind), isInBackup ? way : nil, decision.detail))
  }

  private static func story(_ title: String, _ fate: Fate, _ way: String?, _ detail: String?) -> String {
    var lines = ["\(title) \(fate.verb)" + (way.map { " in a move \($0)" } ?? "")]
    if let reason = fate.reason {
      let explanation = reason.explanation
      lines.append("  why: \(reason.rawValue): \(explanation.headline)")
      if let detail { lines.append("       \(UntrustedText.escaped(detail, keepingEscapes: true))") }
      lines.append("  do:  \(explanation.action)")
    }
    return lines.joined(separator: "\n")
  }

  /// Every text by which a test may ask for it.
  var allNames: Set<String> {
    let plain = [label, account, service, server].compactMap(\.self)
    let pairs = [service, server].compactMap { place in
      place.flatMap { place in account.map { "\(place)/\($0)" } }
    }
    return Set(plain + pairs)
  }
}

extension MovedItem: CustomStringConvertible {
  /// What `fate` prints: the item, its outcome, the reason and what to do.
  public var description: String { fate.description }
}
