package import KeyhaulKit

extension MakerItems {
  /// That the device is available, as of when, and how far it is known to be the one that made the backup.
  package var statement: String {
    let who = isProven ? "which made this backup" : "whose identifier is in this backup"
    var text = "\(device), \(who), is available: its current items were used (revision \(revision))."
    if !isProven { text += " No item in the backup proves that it is the source device." }
    if hasChanged { text += " It has changed since the backup: \(Amounts.list(changes))." }
    if doubtfulCount > 0 {
      text += " \(Amounts.count(doubtfulCount, "item")) of it may be among the backup's items that cannot be decrypted."
    }
    return text
  }

  private var changes: [String] {
    func item(_ count: Int) -> String { Amounts.count(count, "item") }
    return [
      since.isEmpty ? nil : "\(item(since.count)) of it \(since.count == 1 ? "is" : "are") not in the backup",
      changedCount == 0 ? nil : "\(item(changedCount)) \(changedCount == 1 ? "differs" : "differ")",
      goneCount == 0
        ? nil
        : "\(item(goneCount)) of the backup \(goneCount == 1 ? "is" : "are") not on it, so items that the backup "
          + "omitted may be gone too",
    ].compactMap(\.self)
  }

  /// "4 items of old-phone are in no backup" and what else is on the device alone; `nil` where the backup holds all.
  package var absence: String? {
    let parts = [
      (never.count, "in no backup"), (unreadable.count, "damaged on it and in no backup"),
      (since.count, "not in this backup"),
    ].filter { $0.0 > 0 }
    guard !parts.isEmpty else { return nil }
    return parts.enumerated().map { position, part in
      let items = position == 0 ? "\(Amounts.count(part.0, "item")) of \(device)" : Amounts.grouped(part.0)
      return "\(items) \(part.0 == 1 ? "is" : "are") \(part.1)"
    }.joined(separator: ", ")
  }
}
