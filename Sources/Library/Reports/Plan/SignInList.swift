import KeyhaulKit

/// The apps that lose something, those that lose most first: where to sign in again.
struct SignInList {
  private let target: String
  private let losses: AppLosses

  /// The most apps that are listed in the open.
  static let maximumListCount = 12

  init(_ page: PlanPage) {
    losses = AppLosses(page.plan.byApp(page.apps))
    target = page.target.name
  }

  func write(to page: inout Markup) {
    guard !losses.apps.isEmpty else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2") { page in
        page.words("Sign in again on ")
        page.name(target)
      }
      list(losses.apps.prefix(Self.maximumListCount), to: &page)
      if losses.apps.count > Self.maximumListCount {
        page.element("details") { page in
          page.element("summary", Amounts.count(losses.apps.count - Self.maximumListCount, "more app"))
          list(losses.apps.dropFirst(Self.maximumListCount), to: &page)
        }
      }
      let silent = losses.sealedCount + losses.unnamedCount
      if silent > 0 {
        let words = silent == 1 ? "does not name an app" : "do not name an app"
        page.element("p", ["class": "more"], "\(Amounts.count(silent, "more lost item")) \(words).")
      }
    }
  }

  private func list(_ apps: ArraySlice<AppShare>, to page: inout Markup) {
    page.element("ul", ["class": "names"]) { page in
      for share in apps {
        page.element("li") { page in
          page.name(share.app.words)
          page.element("span", ["class": "muted"], " " + Amounts.count(share.losses.count, "item"))
        }
      }
    }
  }
}
