import ArchivedKeychain
import KeychainFormats
import Migration

/// How an app is named in a report.
enum AppText {
  /// Hostile: it comes out of a backup.
  static func name(_ app: AppName) -> String {
    switch app.kind {
    case .app, .identifier: app.text
    case .group: "group \(app.text)"
    case .unknown: "(sealed)"
    }
  }

  /// An item among those of its own app: its account, else whatever it is called.
  static func short(_ identity: ItemIdentity) -> String {
    let account = identity.account ?? ""
    return HostileText.shortened(account.isEmpty ? ItemText.name(identity) : account, columns: 24)
  }
}
