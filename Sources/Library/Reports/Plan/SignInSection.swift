import KeyhaulKit

/// The section with the apps that lose items, where the user has to sign in again. Apps with the most losses come first.
struct SignInSection {
  private let target: String
  private let losses: AppsNeedingSignIn

  /// The maximum number of apps before the collapsed list.
  static let maximumListCount = 12

  init(_ page: PlanPage) {
    losses = AppsNeedingSignIn(page.plan.byApp(page.apps))
    target = page.target.name
  }

  func write(to page: inout HTMLWriter) {
    guard !losses.apps.isEmpty else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2") { page in
        page.text("Sign in again on ")
        page.name(target)
      }
      writeList(of: losses.apps.prefix(Self.maximumListCount), to: &page)
      if losses.apps.count > Self.maximumListCount {
        page.element("details") { page in
          page.element("summary", HumanReadable.count(losses.apps.count - Self.maximumListCount, "more app"))
          writeList(of: losses.apps.dropFirst(Self.maximumListCount), to: &page)
        }
      }
      let clauses = losses.clausesAboutOtherItems
      if !clauses.isEmpty {
        page.element("p", ["class": "more"], clauses.map { "\($0)." }.joined(separator: " "))
      }
    }
  }

  private func writeList(of apps: ArraySlice<AppSummary>, to page: inout HTMLWriter) {
    page.element("ul", ["class": "names"]) { page in
      for summary in apps {
        page.element("li") { page in
          page.name(summary.app.displayName)
          page.element("span", ["class": "muted"], " " + HumanReadable.count(summary.losses.count, "item"))
        }
      }
    }
  }
}
