public import KeyhaulKit

/// Makes an export of items while they go by: none is held, and what was made of them leaves in portions.
public struct ItemExportWriter: ~Copyable {
  /// How much waits to be taken, in bytes.
  private static let portionByteCount = 32_768

  private let form: ItemExportForm
  /// What has been made so far.
  public internal(set) var counts = ItemExportCounts()
  /// What waits to be taken; of the form that is JSON it is in the stream.
  var text = SensitiveBuffer()
  private var exchange: CredentialExchange?

  /// Begins an export. What stands before its items is taken with them.
  public init(_ form: ItemExportForm) {
    self.form = form
    switch form {
    case .passwords: appendColumns(ItemExport.passwordColumns)
    case .wirelessNetworks: appendColumns(ItemExport.networkColumns)
    case .genericPasswordPlist: text.append(GenericPasswordPlist.start)
    case .credentialExchange(let made): exchange = CredentialExchange(made: made)
    case .oneTimeSecrets, .certificatesAndKeys: break
    }
  }

  /// Adds an item. One of another kind than the form is for is passed over.
  ///
  /// - Parameters:
  ///   - item: The next one.
  ///   - portion: Takes what has been made, once it is some kilobytes; lent, for there are secrets in it.
  public mutating func append<Failure: Error>(
    _ item: KeychainItem, to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    switch (form, item.kind) {
    case (.passwords, .genericPassword), (.passwords, .internetPassword): appendPassword(item)
    case (.genericPasswordPlist, .genericPassword): appendEntry(item)
    case (.credentialExchange, _): try exchange?.append(item, &counts, to: portion)
    case (.oneTimeSecrets, _): appendOneTimeSecret(item)
    case (.certificatesAndKeys, .certificate), (.certificatesAndKeys, .key): appendBlock(item)
    case (.wirelessNetworks, .genericPassword): appendNetwork(item)
    case (.passwords, _), (.genericPasswordPlist, _), (.certificatesAndKeys, _), (.wirelessNetworks, _): break
    }
    guard text.count >= Self.portionByteCount else { return }
    try text.withBytes(portion)
    text.removeAll()
  }

  /// Ends the export, and gives what waits.
  ///
  /// - Parameter portion: Takes the rest of what has been made, lent.
  /// - Returns: What it holds.
  public consuming func end<Failure: Error>(
    to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) -> ItemExportCounts {
    switch form {
    case .genericPasswordPlist: text.append(GenericPasswordPlist.end)
    case .credentialExchange: try exchange.take()?.end(to: portion)
    case .passwords, .oneTimeSecrets, .certificatesAndKeys, .wirelessNetworks: break
    }
    try text.withBytes(portion)
    return counts
  }

  // MARK: Tables

  private mutating func appendColumns(_ names: [String]) {
    text.append(names.joined(separator: ","))
    endLine()
  }

  /// A cell of a table that names something: never computed by a spreadsheet.
  mutating func appendName(_ name: String) {
    if CSV.isFormula(name) { counts.inertNameCount += 1 }
    text.appendQuoted(CSV.inert(name))
  }

  /// A cell of a table that has to arrive as it is.
  mutating func appendSecret(_ bytes: UnsafeRawBufferPointer) {
    if bytes.first.map(formulaStarts.contains) == true { counts.formulaSecretCount += 1 }
    text.appendQuoted(bytes)
  }

  mutating func endLine() { text.append("\r\n") }
}

private let formulaStarts = Array("=+-@\t\r\n".utf8)
