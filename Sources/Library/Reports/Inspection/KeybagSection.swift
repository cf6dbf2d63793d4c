import KeyhaulKit

/// The section about the keybag: the cost of guessing its password, and a collapsed table of class keys.
struct KeybagSection {
  private let backup: InspectionPage.BackupInfo

  init(_ backup: InspectionPage.BackupInfo) { self.backup = backup }

  func write(to page: inout HTMLWriter) {
    let keybag = backup.keybag
    page.newLine()
    page.element("section") { page in
      page.element("h2", "Its keybag")
      let version = keybag.version.map { "Version \($0)" } ?? "No version"
      let cost =
        backup.isEncrypted
        ? "Each guess at the password takes \(keybag.iterationsText)\(timeClause)."
        : "A backup without a password needs no guessing."
      page.element("p", "\(version), \(HumanReadable.count(keybag.classKeys.count, "class key")). \(cost)")
      guard !keybag.classKeys.isEmpty else { return }
      page.element("details") { page in
        page.element("summary", "The class keys")
        writeTable(to: &page)
      }
    }
  }

  private var timeClause: String {
    if let measured = backup.measuredUnlock {
      // A measured time is not approximate.
      return ", \(HumanReadable.estimate(measured).replacing("about ", with: "")) on the machine that made this page"
    }
    return backup.unlockTime.map { ", \(HumanReadable.estimate($0)) on the machine that made this page" } ?? ""
  }

  private func writeTable(to page: inout HTMLWriter) {
    page.element("table", ["class": "plain"]) { page in
      page.element("thead") { page in
        page.element("tr") { page in
          for title in ["Protects", "Wrapped with", "Key", "Class number"] {
            page.element("th", ["scope": "col"], title)
          }
        }
      }
      page.element("tbody") { page in
        for key in backup.keybag.classKeys {
          page.element("tr") { page in
            page.element("th", ["scope": "row"], key.purpose)
            for text in [key.wrapping, key.algorithm, key.keyClass.map { String($0.rawValue) } ?? "unknown"] {
              page.element("td", text)
            }
          }
        }
      }
    }
  }
}
