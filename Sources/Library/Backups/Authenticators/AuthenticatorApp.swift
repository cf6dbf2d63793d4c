/// An authenticator app whose codes are not, or not only, in ordinary keychain items.
///
/// `AuthenticatorAccounts` reads the codes in the files of these apps, where possible. `OneTimePassword` in Reports
/// recognizes one-time passwords in the items of all apps.
///
/// The raw values are used in JSON. Sources: the published source code of the iOS apps, as named at each case.
package enum AuthenticatorApp: String, Sendable, CaseIterable {
  /// Encrypts its codes with a key in a keychain item of this device only. Source: ente-io/ente, `mobile/apps/auth`,
  /// `configuration.dart` and `authenticator_db.dart`.
  case enteAuth = "ente-auth"
  /// Keeps its codes in keychain items that are never in a backup. Its first versions kept them in its preferences.
  /// Source: freeotp/freeotp-ios, `KeychainStore.swift`, `TokenStore.swift` and `TokenStore.m`.
  case freeOTP = "freeotp"
  /// Its source code is no longer published. Codes that its first versions stored in the keychain are read as items.
  case googleAuthenticator = "google-authenticator"
  /// Encrypts its codes in a database with a key in the keychain. Source: protonpass/ios-authenticator,
  /// `EncryptedEntryEntity.swift`, `EncryptionService.swift` and `LocalDataManager.swift`.
  case protonAuthenticator = "proton-authenticator"
  /// Encrypts its codes in a database with a password. Source: raivo-otp/ios-application, `RealmHelper.swift` and
  /// `StorageHelper.swift`.
  case raivo
  /// Encrypts its codes in a database with a key that is not in its published source. Source: twofas/2fas-ios,
  /// `LocalKeyEncryption.swift` and `CodeParser.swift`.
  case twoFAS = "2fas"

  /// The name in the App Store.
  package var name: String {
    switch self {
    case .enteAuth: "Ente Auth"
    case .freeOTP: "FreeOTP"
    case .googleAuthenticator: "Google Authenticator"
    case .protonAuthenticator: "Proton Authenticator"
    case .raivo: "Raivo OTP"
    case .twoFAS: "2FAS"
    }
  }

  /// The bundle identifier.
  package var identifier: String {
    switch self {
    case .enteAuth: "io.ente.auth"
    case .freeOTP: "org.fedorahosted.freeotp"
    case .googleAuthenticator: "com.google.Authenticator"
    case .protonAuthenticator: "me.proton.authenticator"
    case .raivo: "com.finnwea.Raivo"
    case .twoFAS: "com.twofas.org"
    }
  }

  /// A file in a backup, by its domain and path.
  struct FileName: Sendable, Hashable {
    let domain: String
    let path: String
  }

  /// The files that contain the app's codes, if their names are fixed.
  var files: [FileName] {
    switch self {
    case .enteAuth:
      ["ente.authenticator.db", "ente.offline_authenticator.db"].map {
        FileName(domain: "AppDomain-\(identifier)", path: "Documents/\($0)")
      }
    case .freeOTP:
      [FileName(domain: "AppDomain-\(identifier)", path: "Library/Preferences/\(identifier).plist")]
    case .protonAuthenticator:
      // SwiftData stores in the container of an app's group if the app has one.
      ["AppDomainGroup-group.\(identifier)", "AppDomain-\(identifier)"].map {
        FileName(domain: $0, path: "Library/Application Support/default.store")
      }
    case .twoFAS: [FileName(domain: "AppDomainGroup-group.twofas.com", path: "TwoFAS.sqlite")]
    case .googleAuthenticator, .raivo: []
    }
  }
}
