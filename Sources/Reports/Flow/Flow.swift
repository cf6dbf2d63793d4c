import KeychainFormats
import Migration

/// The plan as streams of items: from each protection class to where its items end.
struct Flow: Sendable {
  /// Where items come from: a class of the archive, or what the target holds already.
  enum Origin: Sendable, Hashable {
    case archived(ProtectionClass?)
    case onTarget
  }

  /// Where items end.
  enum End: String, Sendable, CaseIterable {
    case moves
    case stays
    case lost
    case gone
  }

  struct Stream: Sendable, Hashable {
    let origin: Origin
    let end: End
    let count: Int
  }

  /// In the order in which they are drawn, from the top: by origin, then by end. None is empty.
  let streams: [Stream]

  /// - Parameter removedCount: How many items of the target are gone afterwards.
  init(_ decisions: [MigrationPlan.Decision], removedCount: Int) {
    var counts: [Origin: [End: Int]] = [:]
    for decision in decisions {
      counts[.archived(decision.protection), default: [:]][End(decision.outcome), default: 0] += 1
    }
    if removedCount > 0 { counts[.onTarget] = [.gone: removedCount] }
    let origins = ProtectionClass.allCases.map { Origin.archived($0) } + [.archived(nil), .onTarget]
    streams = origins.flatMap { origin in
      End.allCases.compactMap { end in
        counts[origin]?[end].map { Stream(origin: origin, end: end, count: $0) }
      }
    }
  }

  var origins: [Origin] {
    streams.reduce(into: []) { if $0.last != $1.origin { $0.append($1.origin) } }
  }

  /// Those in use, from the top.
  var ends: [End] { End.allCases.filter { end in streams.contains { $0.end == end } } }

  func count(of end: End) -> Int { streams.reduce(0) { $0 + ($1.end == end ? $1.count : 0) } }

  func count(of origin: Origin) -> Int { streams.reduce(0) { $0 + ($1.origin == origin ? $1.count : 0) } }
}

extension Flow.End {
  fileprivate init(_ outcome: MigrationPlan.Outcome) {
    switch outcome {
    case .migrates: self = .moves
    case .staysBehind: self = .stays
    case .unreadable: self = .lost
    }
  }
}

extension Flow.Origin {
  /// In words for two short lines.
  var lines: [String] {
    switch self {
    case .archived(nil): ["class unknown"]
    case .archived(let protection?):
      protection.phrase.split(separator: ",").map { $0.drop { $0 == " " } }.map(String.init)
    case .onTarget: ["there already"]
    }
  }
}
