import ArchivedKeychain
import KeychainFormats
import Migration

/// The apps that lose something, those that lose most first: where to sign in again.
struct SignInList {
  private let target: String
  private let apps: [(name: String, count: Int)]
  /// Lost items of which nobody can say whose they are.
  private let sealedCount: Int

  /// The most apps that are listed in the open.
  static let longestList = 12

  init(_ plan: PlanPage) {
    var counts: [String: Int] = [:]
    var sealed = 0
    for decision in plan.decisions where decision.reason?.needsSigningIn == true {
      if let name = Self.app(of: decision.identity, plan.appNames) {
        counts[name, default: 0] += 1
      } else {
        sealed += 1
      }
    }
    apps = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { (name: $0.key, count: $0.value) }
    sealedCount = sealed
    target = plan.target.name
  }

  private static func app(of identity: ItemIdentity, _ names: [String: String]) -> String? {
    if let group = identity.accessGroup, !group.isEmpty { return names[group] ?? AppWords.name(of: group) }
    return [identity.service, identity.server].compactMap(\.self).first { !$0.isEmpty }
  }

  func write(to page: inout Markup) {
    guard !apps.isEmpty else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2") { page in
        page.words("Sign in again on ")
        page.name(target)
      }
      list(apps.prefix(Self.longestList), to: &page)
      if apps.count > Self.longestList {
        page.element("details") { page in
          page.element("summary", "\(Amounts.count(apps.count - Self.longestList, "more app"))")
          list(apps.dropFirst(Self.longestList), to: &page)
        }
      }
      if sealedCount > 0 {
        let words = sealedCount == 1 ? "does not say whose it is" : "do not say whose they are"
        page.element("p", ["class": "more"], "\(Amounts.count(sealedCount, "more lost item")) \(words).")
      }
    }
  }

  private func list(_ apps: ArraySlice<(name: String, count: Int)>, to page: inout Markup) {
    page.element("ul", ["class": "names"]) { page in
      for app in apps {
        page.element("li") { page in
          page.name(app.name)
          page.element("span", ["class": "muted"], " " + Amounts.count(app.count, "item"))
        }
      }
    }
  }
}

extension PlanPage {
  /// The device that the items come from, as far as anybody knows.
  var sourceDevice: String {
    switch source.kind {
    case .archive: source.deviceName ?? "the old device"
    case .device: source.name
    }
  }
}

extension Reason {
  /// Whether the item was something of an app's that has to be made anew by hand.
  fileprivate var needsSigningIn: Bool {
    switch self {
    case .deviceBound, .passcodeOnly, .hardwareKey, .needsAuthentication, .noClassKey, .tagMismatch, .malformed,
      .unsupportedVersion:
      true
    // A backup with a password brings them, the system makes them, or there is nothing to miss.
    case .backupNotEncrypted, .systemBound, .sharedGroup, .appClip, .deleted: false
    }
  }
}
