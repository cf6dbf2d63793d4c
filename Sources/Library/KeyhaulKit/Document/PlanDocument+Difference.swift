extension PlanDocument {
  /// What differs between a saved plan and one made now, as one sentence; `nil` where they are the same plan.
  ///
  /// Compares every item, change and removal, not only the counts, so that an edited plan is refused as well.
  public func difference(from now: PlanDocument) -> String? {
    if format != now.format { return "its format is \(format), not \(now.format)" }
    if source.digest != now.source.digest { return "the backup is another one or has changed" }
    if target.name != now.target.name { return "it was made for \(target.name)" }
    if target.revision != now.target.revision {
      return "\(target.name) has changed since (revision \(target.revision), now \(now.target.revision))"
    }
    if policy != now.policy {
      return "it was made for a restore that \(policy == .replace ? "replaces" : "merges with") the existing items"
    }
    if target.sameDevice != now.target.sameDevice { return "it was made for another device" }
    guard let difference = decisionDifference(from: now) else { return nil }
    guard target.state != now.target.state else { return difference }
    return "it was made while \(target.name) was \(Self.words(ofState: target.state)): \(difference)"
  }

  private static func words(ofState state: String) -> String {
    state == "before-first-unlock" ? "not yet unlocked" : state
  }

  /// What is decided otherwise of the items, or of those that would be removed.
  private func decisionDifference(from now: PlanDocument) -> String? {
    if items.count != now.items.count { return "it lists \(items.count) items, the backup has \(now.items.count)" }
    if let index = items.indices.first(where: { !items[$0].decides(as: now.items[$0]) }) {
      return "item \(index) is decided differently now"
    }
    if removed != now.removed {
      let isNamedAnew = removed.count == now.removed.count && removed.contains(where: \.isSealed)
      return isNamedAnew
        ? "it does not name all items that would be removed" : "other items would be removed"
    }
    if summary != now.summary { return "its summary does not match its items" }
    return nil
  }
}
