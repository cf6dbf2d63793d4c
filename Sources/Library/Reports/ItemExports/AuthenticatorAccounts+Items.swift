package import KeyhaulKit

extension AuthenticatorAccounts.Account {
  /// The account as a keychain item that all formats can export. Its secret is the address of the account.
  ///
  /// The item has no label, so its title is the issuer in the address.
  package var item: KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.service] = .string(app.name)
    item.secret = address
    return item
  }
}
