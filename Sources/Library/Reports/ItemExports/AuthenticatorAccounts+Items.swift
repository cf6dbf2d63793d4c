package import KeyhaulKit

extension AuthenticatorAccounts.Account {
  /// The account as a keychain item that all formats can export. Its secret is the account's `otpauth` URL.
  ///
  /// The item has no label, so its title is the issuer in the URL.
  package var item: KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.service] = .string(app.name)
    item.secret = address
    return item
  }
}
