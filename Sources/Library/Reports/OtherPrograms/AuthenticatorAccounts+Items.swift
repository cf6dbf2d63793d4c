package import KeyhaulKit

extension AuthenticatorAccounts.Account {
  /// The account as a keychain item whose secret is its address, which all formats can export.
  ///
  /// The item has no label, so that its title is the issuer of its address.
  package var item: KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.service] = .string(app.name)
    item.secret = address
    return item
  }
}
