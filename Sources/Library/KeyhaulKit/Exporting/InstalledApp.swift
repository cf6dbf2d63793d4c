/// An app that was installed on a device when the device was backed up.
package struct InstalledApp: Sendable, Hashable {
  /// The app's bundle identifier. Untrusted, like the name.
  package let identifier: String
  /// The app's name in the App Store; the identifier if there is none.
  package let name: String
  /// The kind of app, if it is one that often keeps secrets on its device; otherwise `nil`.
  package let kind: AppKind?

  /// Creates an app.
  ///
  /// - Parameters:
  ///   - identifier: The app's bundle identifier.
  ///   - name: The app's name in the App Store; `nil` if it is unknown.
  ///   - genre: The App Store's genre ID of the app's category; `nil` if it is unknown.
  package init(identifier: String, name: String?, genre: Int64?) {
    self.identifier = identifier
    self.name = name ?? identifier
    kind = AppKind(identifier: identifier, name: name, genre: genre)
  }

  /// Returns apps in the order of their names.
  static func sorted(_ apps: [InstalledApp]) -> [InstalledApp] {
    apps.map { (key: ($0.name.lowercased(), $0.identifier), app: $0) }.sorted { $0.key < $1.key }.map(\.app)
  }
}

/// A kind of app whose secrets often cannot leave the device.
///
/// An app's kind comes from its category in the App Store, its identifier, or words in its name or identifier. Reports
/// use it to suggest a check; they do not conclude anything about the app's items from it.
package enum AppKind: String, Sendable, CaseIterable {
  case authenticator
  case messenger
  case wallet
  case finance

  /// The category Finance.
  ///
  /// Source: Apple, "Genre IDs Appendix" of the affiliate documentation (6015).
  static let financeGenre: Int64 = 6015

  /// Returns the kind of an app.
  ///
  /// - Parameters:
  ///   - identifier: The app's bundle identifier.
  ///   - name: The app's name in the App Store; `nil` if it is unknown.
  ///   - genre: The App Store's genre ID of the app's category; `nil` if it is unknown.
  init?(identifier: String, name: String?, genre: Int64?) {
    let identifier = String(identifier.unicodeScalars.prefix(Self.examinedLength)).lowercased()
    let name = String((name ?? "").unicodeScalars.prefix(Self.examinedLength)).lowercased()
    let words = Set((identifier + " " + name).split { !$0.isLetter && !$0.isNumber }.map(String.init))
    let kindsWithoutGenre: [AppKind] = [.authenticator, .messenger, .wallet]
    let matchingKind = kindsWithoutGenre.first { kind in
      kind.identifiers.contains(identifier) || !kind.keywords.isDisjoint(with: words)
        || kind.namePrefixes.contains { name.hasPrefix($0) }
    }
    if let matchingKind {
      self = matchingKind
    } else if genre == Self.financeGenre || !AppKind.finance.keywords.isDisjoint(with: words) {
      self = .finance
    } else {
      return nil
    }
  }

  /// The number of scalars at the start of an identifier or a name that are examined.
  private static let examinedLength = 200

  /// Words in the names or identifiers of such apps.
  private var keywords: Set<String> {
    switch self {
    case .authenticator: ["authenticator", "authy", "otp", "totp", "freeotp", "2fa", "2fas"]
    case .messenger: ["messenger"]
    case .wallet: ["wallet"]
    case .finance: ["bank", "banking"]
    }
  }

  /// Beginnings of the names of such apps.
  private var namePrefixes: [String] {
    switch self {
    case .authenticator: ["duo mobile"]
    case .messenger, .wallet, .finance: []
    }
  }

  /// Bundle identifiers of such apps, in lower case, for backups without app names.
  ///
  /// Source: the apps' entries in the App Store (388497605, 310633997, 686449807); Signal-iOS, `Signal.xcodeproj`.
  private var identifiers: Set<String> {
    switch self {
    case .authenticator: ["com.google.authenticator"]
    case .messenger: ["net.whatsapp.whatsapp", "ph.telegra.telegraph", "org.whispersystems.signal"]
    case .wallet, .finance: []
    }
  }
}
