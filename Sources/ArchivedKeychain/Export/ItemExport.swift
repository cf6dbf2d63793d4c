public import KeychainFormats

/// Items of a keychain in a form that other programs read.
public struct ItemExport: Sendable {
  /// The whole text; wiped with its last holder.
  public let contents: SensitiveBytes
  /// How many items it holds.
  public let count: Int
  /// How many of them are secrets in plain text.
  public let secretCount: Int
  /// Items that belong into it and have no form there.
  public let leftOut: [LeftOut]
  /// Names that got an apostrophe, so that no spreadsheet computes them.
  public let inertNameCount: Int
  /// Secrets that a spreadsheet would compute. They stand unchanged, for a changed password opens nothing.
  public let formulaSecretCount: Int
  /// Rows that say neither what a password is for nor whose it is, because nothing is stored but the secret.
  public let namelessCount: Int

  /// An item that has no form in the export.
  public struct LeftOut: Sendable, Hashable {
    /// The names that it is known by.
    public let identity: ItemIdentity
    /// Why, as the end of a sentence: "its secret is not text".
    public let reason: String
  }
}

/// What an export is collected in.
struct ItemExportBuilder: ~Copyable {
  var text = SensitiveBuffer()
  var count = 0
  var secretCount = 0
  var leftOut: [ItemExport.LeftOut] = []
  var inertNameCount = 0
  var formulaSecretCount = 0
  var namelessCount = 0

  mutating func leave(_ item: KeychainItem, _ reason: String) {
    leftOut.append(.init(identity: ItemIdentity(item), reason: reason))
  }

  /// A cell of a table that names something: never computed by a spreadsheet.
  mutating func appendName(_ name: String) {
    if CSV.isFormula(name) { inertNameCount += 1 }
    text.appendQuoted(CSV.inert(name))
  }

  /// A cell of a table that has to arrive as it is.
  mutating func appendSecret(_ bytes: UnsafeRawBufferPointer) {
    if bytes.first.map(formulaStarts.contains) == true { formulaSecretCount += 1 }
    text.appendQuoted(bytes)
  }

  mutating func endLine() { text.append("\r\n") }

  consuming func finish() -> ItemExport {
    ItemExport(
      contents: text.bytes(), count: count, secretCount: secretCount, leftOut: leftOut,
      inertNameCount: inertNameCount, formulaSecretCount: formulaSecretCount, namelessCount: namelessCount)
  }
}

private let formulaStarts = Array("=+-@\t\r\n".utf8)

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
