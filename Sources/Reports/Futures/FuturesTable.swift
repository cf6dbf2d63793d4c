import KeychainFormats
import Migration

/// The counts of both futures in a table: of a backup one row, of a device one for each kind of backup.
struct FuturesTable {
  private let facts: FuturesFacts

  init(_ facts: FuturesFacts) { self.facts = facts }

  func write(to page: inout Markup) {
    page.newLine()
    page.element("table", ["class": "plain four"]) { page in
      page.element("thead") { page in
        page.element("tr") { page in
          page.element("th", ["scope": "col"]) { $0.element("span", ["class": "unseen"], "Backup") }
          page.element("th", ["scope": "col"], "On " + facts.newPhone)
          page.element("th", ["scope": "col"]) { page in
            page.words("On ")
            page.name(facts.phone)
            page.words(", erased")
          }
        }
      }
      page.element("tbody") { page in
        for hasPassword in facts.isOfBackup ? [facts.futures.hasPassword] : [true, false] {
          row(hasPassword, to: &page)
        }
      }
    }
  }

  private func row(_ hasPassword: Bool, to page: inout Markup) {
    let name =
      facts.isOfBackup ? "From this backup" : hasPassword ? "A backup with a password" : "A backup without one"
    page.element("tr") { page in
      page.element("th", ["scope": "row"], name)
      for onSameDevice in [false, true] {
        let setting = RestoreSetting(hasPassword: hasPassword, onSameDevice: onSameDevice)
        cell(facts.futures.counts(setting), to: &page)
      }
    }
  }

  /// That none stays is said where every item of the device is known.
  private func cell(_ counts: MigrationFutures.Counts, to page: inout Markup) {
    func stays(_ count: Int) -> String { "\(Amounts.grouped(count)) \(count == 1 ? "stays" : "stay") behind" }
    page.element("td", ["class": "other"]) { page in
      page.element("b", Amounts.grouped(counts.comesBack))
      page.words(" of \(Amounts.count(counts.total, "item"))")
      let parts = [
        counts.expected > 0 ? "\(Amounts.grouped(counts.expected)) of them expected by class" : nil,
        counts.staysBehind > 0 ? stays(counts.staysBehind) : nil,
        counts.unreadable > 0 ? "\(Amounts.grouped(counts.unreadable)) cannot be read" : nil,
        counts.never.map { "\(Amounts.grouped($0)) never in a backup" } ?? "never in the backup: not known",
        counts.since.flatMap { $0 > 0 ? "\(Amounts.grouped($0)) not in this backup" : nil },
      ].compactMap(\.self)
      page.element("small", parts.joined(separator: " · "))
    }
  }
}
