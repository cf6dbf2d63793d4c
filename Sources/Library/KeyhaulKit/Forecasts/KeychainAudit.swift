import Backups
import Basics
import KeychainFormats
package import KeychainRules

/// An overview for developers of the items that apps store: those that can leave the device, those that never do, and
/// those with a deprecated protection class.
package struct KeychainAudit: Sendable {
  /// The items in the order of the backup or of the device's plan.
  package let items: [MigrationComparison.Item]

  /// Creates an audit from the outcomes of the four restores.
  package init(_ comparison: MigrationComparison) {
    items = comparison.items
  }

  /// Items that a locked device can read before its first unlock.
  package var deprecated: [MigrationComparison.Item] { items.filter(\.isDeprecated) }
  /// Items that arrive on another device if the backup has a password.
  package var leaving: [MigrationComparison.Item] { items.filter { $0.movesToOtherDevice == true } }
  /// Items that never arrive on another device.
  package var staying: [MigrationComparison.Item] { items.filter { $0.movesToOtherDevice == false } }
  /// Items that cannot be read, so their outcome is unknown.
  package var unreadable: [MigrationComparison.Item] { items.filter { $0.movesToOtherDevice == nil } }
}

/// The decisions of a plan about the items of one app.
package struct AppSummary: Sendable {
  /// The app, if it is known.
  package let app: AppName
  /// The decisions about its items that arrive.
  package internal(set) var migrates: [MigrationPlan.Decision] = []
  /// The decisions about its items that do not move because of a rule or a missing key.
  package internal(set) var staysBehind: [MigrationPlan.Decision] = []
  /// The decisions about its items that are damaged.
  package internal(set) var unreadable: [MigrationPlan.Decision] = []

  /// The decisions about items that the user must restore by hand. Not included: items that a backup with a password
  /// would move, because making one is easier.
  package var losses: [MigrationPlan.Decision] {
    (staysBehind + unreadable).filter { decision in
      guard let reason = decision.outcome.reason else { return false }
      return reason.requiresAction && reason != .backupNotEncrypted
    }
  }
}

/// The apps that lose items in the move.
package struct AppsNeedingSignIn: Sendable {
  /// The apps, those with the most losses first.
  package let apps: [AppSummary]
  /// The number of lost items without a known owner because they are encrypted.
  package let encryptedCount: Int
  /// The number of lost items that are decrypted but name no owner.
  package let unnamedCount: Int

  /// Collects the losses of the apps.
  ///
  /// - Parameter summaries: The result of `MigrationPlan.byApp`.
  package init(_ summaries: [AppSummary]) {
    let losing = summaries.filter { !$0.losses.isEmpty }
    apps = losing.filter(\.app.isKnown)
    func count(_ kind: AppName.Kind) -> Int { losing.reduce(0) { $0 + ($1.app.kind == kind ? $1.losses.count : 0) } }
    encryptedCount = count(.unknown)
    unnamedCount = count(.unnamed)
  }
}

extension MigrationPlan {
  /// Returns the plan's decisions by app: apps with the most losses first, then by name, then items of no known app.
  package func byApp(_ directory: AppDirectory) -> [AppSummary] {
    var summaries: [AppName: AppSummary] = [:]
    var apps: [String: AppName] = [:]
    for decision in decisions {
      let group = decision.identity.accessGroup
      let app = group.flatMap { apps[$0] } ?? directory.app(of: decision.identity)
      if let group, app.isKnown { apps[group] = app }
      // Mutates in place: removing and reinserting a summary would copy its arrays.
      switch decision.outcome {
      case .migrates: summaries[app, default: AppSummary(app: app)].migrates.append(decision)
      case .staysBehind: summaries[app, default: AppSummary(app: app)].staysBehind.append(decision)
      case .unreadable: summaries[app, default: AppSummary(app: app)].unreadable.append(decision)
      }
    }
    let ranked = summaries.values.map { summary in
      (rank: (Self.rank(summary.app.kind), -summary.losses.count, summary.app.text), summary: summary)
    }
    return ranked.sorted { $0.rank < $1.rank }.map(\.summary)
  }

  private static func rank(_ kind: AppName.Kind) -> Int {
    switch kind {
    case .app, .identifier, .group: 0
    case .unnamed: 1
    case .unknown: 2
    }
  }
}

extension MigrationComparison.Item {
  private static let leaving = RestoreScenario(hasPassword: true, onSameDevice: false)

  /// Whether the item arrives on another device if the backup has a password; `nil` if it cannot be read.
  package var movesToOtherDevice: Bool? {
    switch self[Self.leaving] {
    case .arrives: true
    case .staysBehind: false
    case .unreadable: nil
    }
  }

  /// The reason why the item does not arrive on another device; `nil` if it does.
  package var reasonToStay: Reason? { self[Self.leaving].reason }

  /// Whether a locked device can read the item before the first unlock. These classes are deprecated since iOS 12.
  ///
  /// Source: Apple, `kSecAttrAccessibleAlways`, `kSecAttrAccessibleAlwaysThisDeviceOnly`.
  package var isDeprecated: Bool {
    switch protection {
    case .always, .alwaysThisDeviceOnly: true
    default: false
    }
  }
}
