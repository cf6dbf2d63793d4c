public import KeyhaulKit

/// Makes an export of items while they go by: none is held, and what was made of them leaves in portions.
public struct ItemExportWriter: ~Copyable {
  /// The number of bytes that are collected before they are passed on.
  private static let portionByteCount = 32_768

  private let format: ExportFormat
  /// The time of the export.
  let made: KeychainDate
  /// The counts of the items so far.
  public internal(set) var counts = ItemExportCounts()
  /// The text that has not been passed on.
  var text = SensitiveBuffer()
  /// The state of `credentialExchange`.
  var exchange: CredentialExchange?
  /// The state of `codes` and `migration`.
  var page: CodePage?
  /// The digests of the one-time passwords so far.
  private var codes: Set<[UInt8]> = []

  /// Begins an export. What stands before its items is taken with them.
  ///
  /// - Parameters:
  ///   - format: Not the document.
  ///   - made: The time of the export, for formats that state it.
  public init(_ format: ExportFormat, made: KeychainDate) {
    self.format = format
    self.made = made
    format.begin(&self)
  }

  /// Adds an item. The writer skips one of a kind that the format does not contain. A format of one-time passwords
  /// contains each of them once.
  ///
  /// - Parameters:
  ///   - item: The next one.
  ///   - portion: Takes what has been made, once it is some kilobytes; lent, for there are secrets in it.
  public mutating func append<Failure: Error>(
    _ item: KeychainItem, to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    guard format.kinds.contains(item.kind) else { return }
    if format.containsOneTimePasswords, let password = OneTimePassword(item), !isNew(password),
      format.isOfOneTimePasswords
    {
      counts.repeatedCount += 1
      return
    }
    format.append(&self, item)
    try flush(to: portion)
  }

  /// Adds an account from a file of an authenticator app, unless its code was added before.
  ///
  /// - Parameters:
  ///   - account: The account. A format without one-time passwords skips it.
  ///   - portion: Takes what has been made, as in `append(_:to:)`.
  package mutating func append<Failure: Error>(
    _ account: AuthenticatorAccounts.Account, to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    guard format.containsOneTimePasswords else { return }
    let item = account.item
    guard let password = OneTimePassword(item) else { return counts.leave(item, "it is not an address") }
    guard isNew(password) else {
      counts.repeatedCount += 1
      return
    }
    format.append(&self, item)
    try flush(to: portion)
  }

  /// Records a one-time password, and returns whether it is the first one with its names and parameters.
  private mutating func isNew(_ password: OneTimePassword) -> Bool {
    guard let digest = password.digest else { return true }
    return codes.insert(digest).inserted
  }

  private mutating func flush<Failure: Error>(
    to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    guard text.count >= Self.portionByteCount else { return }
    try text.withBytes(portion)
    text.removeAll()
  }

  /// Ends the export, and gives what waits.
  ///
  /// - Parameter portion: Takes the rest of what has been made, lent.
  /// - Returns: What it contains.
  public consuming func end<Failure: Error>(
    to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) -> ItemExportCounts {
    format.end(&self)
    try text.withBytes(portion)
    return counts
  }

  // MARK: Tables

  mutating func appendColumns(_ names: [String]) {
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
