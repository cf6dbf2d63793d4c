package import Basics
import KeychainCrypto
import KeychainFormats
import Keychains

/// The accounts in the files of authenticator apps, and the apps whose codes cannot be read.
package struct AuthenticatorAccounts: Sendable {
  /// An account: its app, and its `otpauth` address with the secret.
  package struct Account: Sendable {
    package let app: AuthenticatorApp
    package let address: SensitiveBytes

    package init(app: AuthenticatorApp, address: SensitiveBytes) {
      self.app = app
      self.address = address
    }
  }

  /// An app whose codes are not all among the accounts.
  package struct Missing: Sendable, Hashable {
    package let app: AuthenticatorApp
    package let obstacle: Obstacle
  }

  /// A reason why codes of an app are not among the accounts. The identifiers are used in JSON.
  package enum Obstacle: Sendable, Hashable {
    /// The app keeps its codes out of every backup.
    case neverInBackup
    /// The codes are encrypted with a key that never leaves the device.
    case deviceKey
    /// The codes are encrypted with a password of the app.
    case appPassword
    /// The codes are encrypted with a key that is not published.
    case unpublishedKey
    /// The app's storage format is not published.
    case unpublishedStorage
    /// The codes are encrypted with keys in keychain items that cannot be decrypted. `count` is the number of codes.
    case keychainKey(count: Int)
    /// The app's file cannot be read.
    case file(reason: String)

    package var identifier: String {
      switch self {
      case .neverInBackup: "never-in-backup"
      case .deviceKey: "device-key"
      case .appPassword: "app-password"
      case .unpublishedKey: "unpublished-key"
      case .unpublishedStorage: "unpublished-storage"
      case .keychainKey: "keychain-key"
      case .file: "unreadable-file"
      }
    }
  }

  /// The accounts, app by app, in the order of each file.
  package private(set) var accounts: [Account] = []
  /// The apps of the backup whose codes are not all among the accounts.
  package private(set) var missing: [Missing] = []

  /// Whether a file with codes is damaged.
  package var hasUnreadableFile: Bool {
    missing.contains { if case .file = $0.obstacle { true } else { false } }
  }

  /// Creates a collection of accounts that were read before.
  package init(_ accounts: [Account] = []) { self.accounts = accounts }

  /// Reads the files of the authenticator apps in a backup.
  ///
  /// - Parameters:
  ///   - archive: The backup.
  ///   - items: The backup's keychain items, including keys of apps.
  ///   - installed: The identifiers of the apps that the backup lists.
  /// - Throws: An error if the manifest cannot be read. A file that cannot be read is recorded as an obstacle instead.
  package init(
    in archive: BackupArchive, _ items: BackupItemReader, installed: some Sequence<String>
  ) throws(KeyhaulError) {
    let installed = Set(installed)
    let files = AppFiles(archive: archive, list: items.fileList, keys: items.keys)
    for app in AuthenticatorApp.allCases {
      var codeFiles: [ListedFile] = []
      for name in app.files { if let file = try files.find(name) { codeFiles.append(file) } }
      let hasDomain = try files.hasDomain(of: app)
      guard !codeFiles.isEmpty || hasDomain || installed.contains(app.identifier) else { continue }
      do throws(KeyhaulError) {
        try addAccounts(of: app, codeFiles, files, items)
      } catch {
        addMissing(app, .file(reason: error.reason))
      }
    }
  }

  private mutating func addMissing(_ app: AuthenticatorApp, _ obstacle: Obstacle) {
    missing.append(Missing(app: app, obstacle: obstacle))
  }

  private mutating func addAccounts(
    of app: AuthenticatorApp, _ codeFiles: [ListedFile], _ files: AppFiles, _ items: BackupItemReader
  ) throws(KeyhaulError) {
    switch app {
    case .enteAuth: addMissing(app, .deviceKey)
    case .googleAuthenticator: addMissing(app, .unpublishedStorage)
    case .raivo: addMissing(app, .appPassword)
    case .twoFAS: addMissing(app, .unpublishedKey)
    case .freeOTP:
      try addFreeOTPAccounts(in: codeFiles, files)
      // Codes that the app added later are in items that never enter a backup.
      addMissing(app, .neverInBackup)
    case .protonAuthenticator:
      for file in codeFiles { try addProtonAccounts(in: try files.database(file), items) }
    }
  }

  private mutating func addFreeOTPAccounts(in codeFiles: [ListedFile], _ files: AppFiles) throws(KeyhaulError) {
    var addresses: [SensitiveBytes] = []
    for file in codeFiles {
      try files.withContents(of: file) { (bytes) throws(KeyhaulError) in
        addresses += try FreeOTPPreferences.addresses(in: bytes)
      }
    }
    accounts += addresses.map { Account(app: .freeOTP, address: $0) }
  }

  private mutating func addProtonAccounts(in database: AppDatabase, _ items: BackupItemReader) throws(KeyhaulError) {
    let rows = try ProtonAuthenticatorStore.rows(of: database)
    let appKeys = rows.isEmpty ? [:] : try ProtonAuthenticatorStore.keys(for: rows, among: items)
    var undecryptableCount = 0
    for row in rows {
      if let key = appKeys[row.keyName], let address = try ProtonAuthenticatorStore.address(of: row, key: key) {
        accounts.append(Account(app: .protonAuthenticator, address: address))
      } else {
        undecryptableCount += 1
      }
    }
    if undecryptableCount > 0 { addMissing(.protonAuthenticator, .keychainKey(count: undecryptableCount)) }
  }
}

/// Reads files of apps from a backup completely, up to a limit.
private struct AppFiles {
  let archive: BackupArchive
  let list: FileList
  let keys: ClassKeys

  private static let maximumPreferencesByteCount = 16 << 20

  /// Returns a file, or `nil` if the manifest does not list a regular file with this name.
  func find(_ name: AuthenticatorApp.FileName) throws(KeyhaulError) -> ListedFile? {
    try list.file(domain: name.domain, relativePath: name.path).flatMap { $0.kind == .file ? $0 : nil }
  }

  /// Returns whether the backup has a domain of an app.
  func hasDomain(of app: AuthenticatorApp) throws(KeyhaulError) -> Bool {
    try list.file(domain: "AppDomain-\(app.identifier)", relativePath: "") != nil
  }

  /// Calls a closure with the contents of a file that may contain secrets.
  func withContents(
    of file: ListedFile, _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var contents = SensitiveBuffer()
    var failure: KeyhaulError?
    let scan = try archive.readPayload(of: file, with: keys) { (chunk) throws(KeyhaulError) in
      guard contents.count + chunk.count <= Self.maximumPreferencesByteCount else {
        throw Self.overLimit(Self.maximumPreferencesByteCount)
      }
      contents.append(chunk)
    }
    guard scan.hasValidPadding else { throw KeyhaulError(.damaged, "its padding is not that of a file") }
    contents.withBytes { bytes in
      do throws(KeyhaulError) { try body(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Reads a database with its log.
  func database(_ file: ListedFile) throws(KeyhaulError) -> AppDatabase {
    guard let domain = file.domain, let path = file.relativePath else {
      throw KeyhaulError(.damaged, "its row has no name")
    }
    let log = try find(.init(domain: domain, path: path + "-wal"))
    return try AppDatabase(
      file: try bytes(of: file), log: try log.map { (log) throws(KeyhaulError) in try bytes(of: log) } ?? [])
  }

  private func bytes(of file: ListedFile) throws(KeyhaulError) -> [UInt8] {
    var bytes: [UInt8] = []
    let scan = try archive.readPayload(of: file, with: keys) { (chunk) throws(KeyhaulError) in
      guard bytes.count + chunk.count <= AppDatabase.maximumByteCount else {
        throw Self.overLimit(AppDatabase.maximumByteCount)
      }
      bytes.append(contentsOf: chunk)
    }
    guard scan.hasValidPadding else { throw KeyhaulError(.damaged, "its padding is not that of a file") }
    return bytes
  }

  private static func overLimit(_ count: Int) -> KeyhaulError {
    KeyhaulError(.overLimit, "it has more than \(HumanReadable.grouped(Int64(count))) bytes")
  }
}
