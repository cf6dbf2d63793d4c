public import KeyhaulKit

/// Items of a keychain in a form that other programs read.
public struct ItemExport: Sendable {
  /// The whole text; wiped with its last holder.
  public let contents: SensitiveBytes
  /// What it holds, and what it does not.
  public let counts: ItemExportCounts
  /// The items that belong into it and have no form there.
  public let leftOut: [ItemExportCounts.LeftOut]

  /// Makes an export of items that are held. For very many of them there is `ItemExportWriter`.
  public init(_ items: [KeychainItem], as form: ItemExportForm) {
    var text = SensitiveBuffer()
    var writer = ItemExportWriter(form)
    var leftOut: [ItemExportCounts.LeftOut] = []
    for item in items {
      writer.append(item) { text.append($0) }
      if writer.counts.leftOutCount > leftOut.count, let last = writer.counts.lastLeftOut { leftOut.append(last) }
    }
    counts = writer.end { text.append($0) }
    contents = text.bytes()
    self.leftOut = leftOut
  }
}

/// What other programs read.
public enum ItemExportForm: Sendable {
  /// Generic and internet passwords as a table (RFC 4180, every field in quotes, UTF-8 without a mark).
  ///
  /// A password, a one-time secret and a telephone number as user name stand as they are, because whoever imports them
  /// takes them literally. Every other cell that a spreadsheet would compute gets an apostrophe before it.
  case passwords
  /// Generic passwords as a property list in XML: a dictionary with an array `genp`, each entry an item's attributes by
  /// their codes and its secret as data (`v_Data`).
  ///
  /// What iLEAPP takes as `--keychain`: it asks a dictionary for `genp` and reads `agrp`, `acct`, `svce` and `v_Data`.
  /// Values keep their types; dates are cut to whole seconds, and text that XML has no form for stands as data.
  /// Source: iLEAPP, `scripts/ios_keychain.py`.
  case genericPasswordPlist
  /// Generic and internet passwords as JSON that password managers exchange: a login for each, a one-time password for a
  /// secret of one, a Wi-Fi network for one. It was made at the moment, in whole seconds.
  ///
  /// An item is known by its UUID where it has one of its own, else by its place. What is counted up at each use has no
  /// form. Source: FIDO Alliance, "Credential Exchange Format" 1.0, Proposed Standard of 2025-08-14.
  case credentialExchange(made: KeychainDate)
  /// The secrets that one-time passwords are made of, as the addresses that authenticators import, one on each line.
  ///
  /// Source: Google Authenticator, "Key Uri Format".
  case oneTimeSecrets
  /// Certificates and keys in PEM, each below a line that names it.
  ///
  /// Private keys are PKCS#8, public ones SubjectPublicKeyInfo: what every program reads.
  case certificatesAndKeys
  /// The Wi-Fi networks that a device knows, and their passwords, as a table like that of the passwords.
  case wirelessNetworks
}

/// What an export holds, and what it does not.
public struct ItemExportCounts: Sendable, Hashable {
  /// How many items it holds.
  public internal(set) var count = 0
  /// How many of them are secrets in plain text.
  public internal(set) var secretCount = 0
  /// How many items belong into it and have no form there.
  public private(set) var leftOutCount = 0
  /// The first of them.
  public private(set) var firstLeftOut: LeftOut?
  /// The last of them.
  private(set) var lastLeftOut: LeftOut?
  /// Names that got an apostrophe, so that no spreadsheet computes them.
  public internal(set) var inertNameCount = 0
  /// Secrets that a spreadsheet would compute. They stand unchanged, for a changed password opens nothing.
  public internal(set) var formulaSecretCount = 0
  /// Rows that say neither what a password is for nor whose it is, because nothing is stored but the secret.
  public internal(set) var namelessCount = 0

  /// An item that has no form in the export.
  public struct LeftOut: Sendable, Hashable {
    /// The names that it is known by.
    public let identity: ItemIdentity
    /// Why, as the end of a sentence: "its secret is not text".
    public let reason: String
  }

  mutating func leave(_ item: KeychainItem, _ reason: String) {
    leftOutCount += 1
    lastLeftOut = LeftOut(identity: ItemIdentity(item), reason: reason)
    if firstLeftOut == nil { firstLeftOut = lastLeftOut }
  }
}

extension KeychainItem {
  /// A text attribute, data that is text, or a number; empty where there is none.
  func words(_ code: AttributeCode) -> String { ItemIdentity.text(self[code]) ?? "" }

  /// Whether the secret is text, as a password is.
  var hasTextSecret: Bool {
    secret.map { $0.withBytes { UTF8Text.isValid($0) } } ?? false
  }
}

enum UTF8Text {
  /// Looks at the bytes where they are: the `String` that would tell as well is a copy that nobody wipes.
  static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar): if scalar == "\0" { return false }
      case .emptyInput: return true
      case .error: return false
      }
    }
  }
}
