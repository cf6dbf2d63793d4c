import Backups
import KeychainRules

/// The decisions of a plan about the items of one app.
package struct AppSummary: Sendable {
  /// The app or another owner of the items.
  package let app: AppName
  /// The decisions about its items that arrive.
  package internal(set) var migrates: [MigrationPlan.Decision] = []
  /// The decisions about its items that do not move because of a rule or a missing key.
  package internal(set) var staysBehind: [MigrationPlan.Decision] = []
  /// The decisions about its items that are damaged.
  package internal(set) var unreadable: [MigrationPlan.Decision] = []

  /// The decisions about items that the user must restore by hand. Items that a backup with a password would move are
  /// left out, because making such a backup is easier.
  package var losses: [MigrationPlan.Decision] {
    (staysBehind + unreadable).filter { decision in
      guard let reason = decision.outcome.reason else { return false }
      return reason.requiresAction && reason != .backupNotEncrypted
    }
  }
}

/// The apps that lose items in the move.
package struct AppsNeedingSignIn: Sendable {
  /// The apps, in descending order of their losses.
  package let apps: [AppSummary]
  /// The number of lost items whose owner is unknown because they are encrypted.
  package let encryptedCount: Int
  /// The number of lost items that are decrypted but name no owner.
  package let unnamedCount: Int

  /// Collects the losses of the apps.
  ///
  /// - Parameter summaries: The result of `MigrationPlan.byApp`.
  package init(_ summaries: [AppSummary]) {
    let summariesWithLosses = summaries.filter { !$0.losses.isEmpty }
    func lossCount(_ kind: AppName.Kind) -> Int {
      summariesWithLosses.filter { $0.app.kind == kind }.reduce(0) { $0 + $1.losses.count }
    }
    apps = summariesWithLosses.filter(\.app.isKnown)
    encryptedCount = lossCount(.encrypted)
    unnamedCount = lossCount(.withoutGroup)
  }
}

extension MigrationPlan {
  /// Returns the plan's decisions by app: apps with the most losses first, and apps with equal losses by name.
  /// Items without a known owner follow.
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
    case .app, .teamGroup, .group: 0
    case .withoutGroup: 1
    case .encrypted: 2
    }
  }
}
