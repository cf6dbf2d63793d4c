import KeyhaulKit

/// A plan as flows of items, from their groups to their outcomes.
struct SankeyDiagram: Sendable {
  /// The groupings of the items on the left side.
  enum Axis: String, Sendable {
    case app
    case kind
    case protection
  }

  /// The origin of a flow: a group of the source's items, or the target's own items.
  enum Origin: Sendable, Hashable {
    case app(AppName)
    /// Items in Apple's access groups: those of iOS and of its apps.
    case system
    /// The given number of apps, which share a bar because they have the fewest items.
    case otherApps(Int)
    /// Decrypted items that do not name an app.
    case noApp
    /// Encrypted items, whose apps are not known.
    case encrypted
    case kind(ItemKind)
    case protection(ProtectionClass?)
    /// The target's own items.
    case onTarget
  }

  /// The outcome of the items of a flow.
  enum Destination: String, Sendable, CaseIterable {
    case moves
    /// A rule or a key excludes the items.
    case stays
    /// The items cannot be read in the backup.
    case lost
    /// The restore removes the items from the target.
    case gone
  }

  /// The items with the same origin and outcome.
  struct Flow: Sendable, Hashable {
    let origin: Origin
    let destination: Destination
    let count: Int
  }

  /// The number of apps with their own bar if the other apps share one. If only one app is left, it has its own bar too.
  static let maximumAppCount = 7

  let axis: Axis
  /// The flows from top to bottom, by origin, then by outcome. No flow is empty.
  let flows: [Flow]

  /// Creates the diagram of a plan.
  ///
  /// - Parameters:
  ///   - decisions: The decisions about the items.
  ///   - axis: The grouping of the items.
  ///   - apps: The names of the apps, for the grouping by app.
  ///   - removedCount: The number of items that the restore removes from the target.
  init(_ decisions: [MigrationPlan.Decision], by axis: Axis, apps: AppDirectory, removedCount: Int) {
    self.axis = axis
    var counts: Counts
    var origins: [Origin]
    switch axis {
    case .app:
      (origins, counts) = Self.countsByApp(decisions, apps)
      origins = Self.ordered(origins, &counts)
    case .kind:
      counts = Self.counts(decisions) { .kind($0.identity.kind) }
      origins = ItemKind.allCases.map { .kind($0) }
    case .protection:
      counts = Self.counts(decisions) { .protection($0.protection) }
      origins = ProtectionClass.allCases.map { .protection($0) } + [.protection(nil)]
    }
    if removedCount > 0 {
      counts[.onTarget] = [.gone: removedCount]
      origins.append(.onTarget)
    }
    flows = origins.flatMap { origin in
      Destination.allCases.compactMap { destination in
        counts[origin]?[destination].map { Flow(origin: origin, destination: destination, count: $0) }
      }
    }
  }

  /// The origins of the flows, from top to bottom.
  var origins: [Origin] {
    flows.reduce(into: []) { if $0.last != $1.origin { $0.append($1.origin) } }
  }

  /// The outcomes that occur, from top to bottom.
  var destinations: [Destination] {
    Destination.allCases.filter { destination in flows.contains { $0.destination == destination } }
  }

  func count(of destination: Destination) -> Int {
    flows.reduce(0) { $0 + ($1.destination == destination ? $1.count : 0) }
  }

  func count(of origin: Origin) -> Int { flows.reduce(0) { $0 + ($1.origin == origin ? $1.count : 0) } }

  private typealias Counts = [Origin: [Destination: Int]]

  private static func counts(
    _ decisions: [MigrationPlan.Decision], by origin: (MigrationPlan.Decision) -> Origin
  ) -> Counts {
    var counts: Counts = [:]
    for decision in decisions { counts[origin(decision), default: [:]][Destination(decision), default: 0] += 1 }
    return counts
  }

  // MARK: Apps

  /// Returns the origins in the order in which they first occur, and their counts.
  private static func countsByApp(
    _ decisions: [MigrationPlan.Decision], _ apps: AppDirectory
  ) -> (origins: [Origin], counts: Counts) {
    // Many items have the same access group, so the lookup is cached.
    var originsByGroup: [String: Origin] = [:]
    var origins: [Origin] = []
    var counts: Counts = [:]
    for decision in decisions {
      let origin: Origin
      if let group = decision.identity.accessGroup, let cachedOrigin = originsByGroup[group] {
        origin = cachedOrigin
      } else {
        origin = Origin(apps.app(of: decision.identity))
        if let group = decision.identity.accessGroup { originsByGroup[group] = origin }
      }
      if counts[origin] == nil { origins.append(origin) }
      counts[origin, default: [:]][Destination(decision), default: 0] += 1
    }
    return (origins, counts)
  }

  /// Returns the origins in order: the apps with their own bar, the other apps together, and the origins without an app.
  ///
  /// Apps are sorted by their number of items, then by name. The counts of the other apps are merged.
  private static func ordered(_ origins: [Origin], _ counts: inout Counts) -> [Origin] {
    let rankedApps: [(rank: (Int, String, Int), origin: Origin)] = origins.enumerated().compactMap { position, origin in
      let total = counts[origin, default: [:]].values.reduce(0, +)
      return origin.appName.map { (rank: (-total, $0, position), origin: origin) }
    }
    let apps = rankedApps.sorted { $0.rank < $1.rank }.map(\.origin)
    // The bar of a single other app takes no more space than a bar "1 other app".
    let appsWithBar = apps.count <= maximumAppCount + 1 ? apps[...] : apps.prefix(maximumAppCount)
    let otherApps = apps.dropFirst(appsWithBar.count)
    let lastOrigins: [Origin] = [.system, .noApp, .encrypted]
    guard !otherApps.isEmpty else { return appsWithBar + lastOrigins }
    var otherCounts: [Destination: Int] = [:]
    for origin in otherApps {
      otherCounts.merge(counts.removeValue(forKey: origin) ?? [:], uniquingKeysWith: +)
    }
    counts[.otherApps(otherApps.count)] = otherCounts
    return appsWithBar + [.otherApps(otherApps.count)] + lastOrigins
  }
}

extension SankeyDiagram.Destination {
  fileprivate init(_ decision: MigrationPlan.Decision) {
    switch decision.outcome {
    case .migrates: self = .moves
    case .staysBehind: self = .stays
    case .unreadable: self = .lost
    }
  }
}

extension SankeyDiagram.Origin {
  /// Creates the origin of an app's items.
  init(_ app: AppName) {
    switch app.kind {
    case .app, .teamGroup: self = .app(app)
    case .group: self = app.isAppleGroup ? .system : .app(app)
    case .withoutGroup: self = .noApp
    case .encrypted: self = .encrypted
    }
  }

  /// The name of the app; `nil` if the origin is not a single app.
  var appName: String? {
    switch self {
    case .app(let app): app.displayName
    case .system, .otherApps, .noApp, .encrypted, .kind, .protection, .onTarget: nil
    }
  }

  /// Whether the label is a name from a backup. Its text may have any writing direction.
  var isName: Bool { appName != nil }

  /// The label, in one or two short lines.
  var lines: [String] {
    switch self {
    case .app(let app): app.team.map { [app.text, "team \($0)"] } ?? [app.displayName]
    case .system: [AppName.appleGroupDescription]
    case .otherApps(let count): ["\(HumanReadable.grouped(count)) other apps"]
    case .noApp: ["of no named app"]
    case .encrypted: ["app unknown", "(encrypted)"]
    case .kind(let kind): [kind.noun + "s"]
    case .protection(nil): ["class unknown"]
    case .protection(let protection?):
      protection.phrase.split(separator: ",").map { $0.drop { $0 == " " } }.map(String.init)
    case .onTarget: ["there already"]
    }
  }
}

/// Two diagrams of a move: one by app or by kind, and one by protection class. Radio buttons and style rules show one of
/// them, on the screen and in print.
struct SankeyTabs {
  let tabs: [(axis: SankeyDiagram.Axis, view: SankeyView)]

  func write(to page: inout HTMLWriter) {
    page.newLine()
    page.element("fieldset", ["class": "views"]) { page in
      page.element("legend", ["class": "unseen"], "Show where the items go")
      for (index, tab) in tabs.enumerated() {
        let id = "by-\(tab.axis.rawValue)"
        if index == 0 {
          page.voidElement("input", ["type": "radio", "name": "view", "id": id, "checked": "checked"])
        } else {
          page.voidElement("input", ["type": "radio", "name": "view", "id": id])
        }
        page.element("label", ["for": id], "by \(tab.axis.displayName)")
      }
      for tab in tabs { tab.view.write(to: &page) }
    }
  }
}
