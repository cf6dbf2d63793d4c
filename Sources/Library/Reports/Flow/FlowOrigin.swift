import KeyhaulKit

extension Flow.Origin {
  /// The origin of an app's items.
  init(_ app: AppName) {
    switch app.kind {
    case .app, .identifier: self = .app(app)
    case .group: self = app.isApples ? .system : .app(app)
    case .unnamed: self = .noApp
    case .unknown: self = .sealed
    }
  }

  /// The name to order an app by; `nil` of what is no single app.
  var appName: String? {
    switch self {
    case .app(let app): app.words
    case .system, .otherApps, .noApp, .sealed, .kind, .protection, .onTarget: nil
    }
  }

  /// Whether its words come out of a backup, which may have any writing direction.
  var isName: Bool { appName != nil }

  /// In words for one or two short lines.
  var lines: [String] {
    switch self {
    case .app(let app): [app.words]
    case .system: [AppName.applesWords]
    case .otherApps(let count): ["\(Amounts.grouped(count)) other apps"]
    case .noApp: ["of no named app"]
    case .sealed: ["app unknown", "(encrypted)"]
    case .kind(let kind): [kind.noun + "s"]
    case .protection(nil): ["class unknown"]
    case .protection(let protection?):
      protection.phrase.split(separator: ",").map { $0.drop { $0 == " " } }.map(String.init)
    case .onTarget: ["there already"]
    }
  }
}
