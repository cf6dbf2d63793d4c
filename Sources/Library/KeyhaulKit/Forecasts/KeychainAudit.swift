import Backups
import Basics
import KeychainFormats
package import KeychainRules

/// What a developer wants to know of the items that apps store: which may leave the device, which never do, and which
/// have a protection class that Apple has given up.
package struct KeychainAudit: Sendable {
  /// The items in the order of the archive or of the device's plan.
  package let items: [MigrationComparison.Item]

  /// Creates an audit of what four restores would bring.
  package init(_ comparison: MigrationComparison) {
    items = comparison.items
  }

  /// Items that a locked device shows before its first unlock.
  package var deprecated: [MigrationComparison.Item] { items.filter(\.isDeprecated) }
  /// Items that arrive on another device where the backup has a password.
  package var leaving: [MigrationComparison.Item] { items.filter { $0.movesToOtherDevice == true } }
  /// Items that arrive on no other device.
  package var staying: [MigrationComparison.Item] { items.filter { $0.movesToOtherDevice == false } }
  /// Where they would go another copy has to show.
  package var unreadable: [MigrationComparison.Item] { items.filter { $0.movesToOtherDevice == nil } }
}

/// What a plan does with the items of one app.
package struct AppSummary: Sendable {
  /// The app, as far as it is known.
  package let app: AppName
  /// The decisions about its items that arrive.
  package internal(set) var migrates: [MigrationPlan.Decision] = []
  /// The decisions about its items that a rule or a key leaves out.
  package internal(set) var staysBehind: [MigrationPlan.Decision] = []
  /// The decisions about its items that are damaged.
  package internal(set) var unreadable: [MigrationPlan.Decision] = []

  /// What a person has to make up for in the app, by signing in again or by moving what the item guards. What a backup
  /// with a password would bring is not among it: that is the better way.
  package var losses: [MigrationPlan.Decision] {
    (staysBehind + unreadable).filter { decision in
      guard let reason = decision.outcome.reason else { return false }
      return reason.requiresAction && reason != .backupNotEncrypted
    }
  }
}

/// The apps in which a person has something to make up for after the move.
package struct AppsNeedingSignIn: Sendable {
  /// Those with the most losses first.
  package let apps: [AppSummary]
  /// Lost items that are sealed, and with them whose they are.
  package let sealedCount: Int
  /// Lost items that open and do not say whose they are.
  package let unnamedCount: Int

  /// Collects what the apps lose.
  ///
  /// - Parameter shares: As `MigrationPlan.byApp` orders them.
  package init(_ shares: [AppSummary]) {
    let losing = shares.filter { !$0.losses.isEmpty }
    apps = losing.filter(\.app.isKnown)
    func count(_ kind: AppName.Kind) -> Int { losing.reduce(0) { $0 + ($1.app.kind == kind ? $1.losses.count : 0) } }
    sealedCount = count(.unknown)
    unnamedCount = count(.unnamed)
  }
}

extension MigrationPlan {
  /// The plan's decisions by app: those with the most losses first, then by name; what belongs to no known app last.
  package func byApp(_ directory: AppDirectory) -> [AppSummary] {
    var shares: [AppName: AppSummary] = [:]
    var apps: [String: AppName] = [:]
    for decision in decisions {
      let group = decision.identity.accessGroup
      let app = group.flatMap { apps[$0] } ?? directory.app(of: decision.identity)
      if let group, app.isKnown { apps[group] = app }
      // In place: a share that is taken out and put back is copied with all that it holds.
      switch decision.outcome {
      case .migrates: shares[app, default: AppSummary(app: app)].migrates.append(decision)
      case .staysBehind: shares[app, default: AppSummary(app: app)].staysBehind.append(decision)
      case .unreadable: shares[app, default: AppSummary(app: app)].unreadable.append(decision)
      }
    }
    let ranked = shares.values.map { share in
      (rank: (Self.place(share.app.kind), -share.losses.count, share.app.text), share: share)
    }
    return ranked.sorted { $0.rank < $1.rank }.map(\.share)
  }

  private static func place(_ kind: AppName.Kind) -> Int {
    switch kind {
    case .app, .identifier, .group: 0
    case .unnamed: 1
    case .unknown: 2
    }
  }
}

extension MigrationComparison.Item {
  private static let leaving = RestoreScenario(hasPassword: true, onSameDevice: false)

  /// Whether it arrives on another device if the backup has a password; `nil` if it cannot be read here.
  package var movesToOtherDevice: Bool? {
    switch self[Self.leaving] {
    case .arrives: true
    case .staysBehind: false
    case .unreadable: nil
    }
  }

  /// The reason why it does not arrive on another device; `nil` if it does.
  package var reasonToStay: Reason? { self[Self.leaving].reason }

  /// Whether it can be read on a locked device before the first unlock. These classes are deprecated since iOS 12.
  ///
  /// Source: Apple, `kSecAttrAccessibleAlways`, `kSecAttrAccessibleAlwaysThisDeviceOnly`.
  package var isDeprecated: Bool {
    switch protection {
    case .always, .alwaysThisDeviceOnly: true
    default: false
    }
  }
}
