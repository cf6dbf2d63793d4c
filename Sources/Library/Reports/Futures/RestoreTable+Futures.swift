import KeyhaulKit

extension RestoreTable {
  /// The counts of both futures: of a backup one row, of a device one for each kind of backup.
  init(_ facts: FuturesFacts) {
    columns = [
      { $0.words("On " + facts.newPhone) },
      { page in
        page.words("On ")
        page.name(facts.phone)
        page.words(", erased")
      },
    ]
    rows = (facts.isOfBackup ? [facts.futures.hasPassword] : [true, false]).map { hasPassword in
      let backup =
        facts.isOfBackup ? "From this backup" : hasPassword ? "A backup with a password" : "A backup without a password"
      return (
        backup,
        [false, true].map { onSameDevice in
          Cell(facts.futures.counts(RestoreSetting(hasPassword: hasPassword, onSameDevice: onSameDevice)))
        }
      )
    }
  }
}

extension RestoreTable.Cell {
  /// That none stays is said where every item of the device is known.
  fileprivate init(_ counts: MigrationFutures.Counts) {
    self.init(
      count: counts.comesBack, unit: "of \(Amounts.count(counts.total, "item"))",
      details: ArrivalWarning.counted(counts.byWarning)
        + [
          counts.expected > 0 ? "\(Amounts.grouped(counts.expected)) of them expected by class" : nil,
          counts.staysBehind > 0 ? Self.staysBehind(counts.staysBehind) : nil,
          Self.unreadable(counts.unreadable),
          counts.never.map { "\(Amounts.grouped($0)) never in a backup" } ?? "never in the backup: not known",
          counts.since.flatMap { $0 > 0 ? "\(Amounts.grouped($0)) not in this backup" : nil },
        ].compactMap(\.self))
  }
}
