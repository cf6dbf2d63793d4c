import Foundation
import KeychainExamples
import KeychainServices

/// An app that logs in to an FTP server and stores the credentials in the keychain.
struct FTPLogin {
  struct Credentials: Equatable {
    var account: String
    var password: String
  }

  /// The user's input. `shouldSave` is the state of the dialog's switch.
  struct Answer {
    var credentials: Credentials
    var shouldSave: Bool
  }

  enum Outcome: Equatable { case automatic, afterPrompt, failed }

  let server: String
  /// Returns `true` if the server accepts the credentials.
  let signIn: (Credentials) -> Bool
  /// Shows the dialog with the stored credentials. Returns `nil` if the user cancels it.
  let ask: (Credentials?) -> Answer?

  func logIn() throws(KeychainFailure) -> Outcome {
    let storedCredentials = try find()
    if let storedCredentials, signIn(storedCredentials) { return .automatic }
    guard let answer = ask(storedCredentials), signIn(answer.credentials) else { return .failed }
    if answer.shouldSave { try save(answer.credentials, replacing: storedCredentials) }
    return .afterPrompt
  }

  private var query: [String: Any] {
    [
      kSecClass as String: kSecClassInternetPassword,
      kSecAttrServer as String: server,
      kSecAttrProtocol as String: kSecAttrProtocolFTP,
    ]
  }

  private func find() throws(KeychainFailure) -> Credentials? {
    var search = query
    search[kSecMatchLimit as String] = kSecMatchLimitOne
    search[kSecReturnAttributes as String] = true
    search[kSecReturnData as String] = true
    var result: CFTypeRef?
    let status = SecItemCopyMatching(search as CFDictionary, &result)
    guard status != errSecItemNotFound else { return nil }
    guard status == errSecSuccess else { throw KeychainFailure(status: status) }
    guard let item = result as? [String: Any], let account = item[kSecAttrAccount as String] as? String,
      let data = item[kSecValueData as String] as? Data
    else { throw KeychainFailure(status: errSecDecode) }
    return Credentials(account: account, password: String(decoding: data, as: UTF8.self))
  }

  private func save(_ credentials: Credentials, replacing storedCredentials: Credentials?) throws(KeychainFailure) {
    let values: [String: Any] = [
      kSecAttrAccount as String: credentials.account, kSecValueData as String: Data(credentials.password.utf8),
    ]
    let status =
      storedCredentials == nil
      ? SecItemAdd(query.merging(values) { $1 } as CFDictionary, nil)
      : SecItemUpdate(query as CFDictionary, values as CFDictionary)
    guard status == errSecSuccess else { throw KeychainFailure(status: status) }
  }
}
