public import KeyhaulKit

/// Writes an export item by item, without keeping the items or the complete text in memory.
public struct ItemExportWriter: ~Copyable {
  /// The number of bytes that are collected before they are written.
  private static let chunkByteCount = 32_768

  private let format: ExportFormat
  /// The time of the export.
  let date: KeychainDate
  /// The counts of the items that were appended.
  public internal(set) var counts = ItemExportCounts()
  /// The text that is not written yet.
  var text = SensitiveBuffer()
  /// The state of the format `credentialExchange`.
  var exchange: CredentialExchange?
  /// The state of the formats `codes` and `migration`.
  var page: CodePage?
  /// The digests of the one-time passwords that were appended, to find duplicates.
  private var passwordDigests: Set<[UInt8]> = []

  /// Creates a writer. The start of the text is written together with the first items.
  ///
  /// - Parameters:
  ///   - format: The format; not `.document`.
  ///   - date: The time of the export, for formats that state it.
  public init(_ format: ExportFormat, date: KeychainDate) {
    self.format = format
    self.date = date
    format.begin(&self)
  }

  /// Appends an item, if it is of the format's kinds. A format of one-time passwords omits duplicates.
  ///
  /// - Parameters:
  ///   - item: The item.
  ///   - output: Writes the text, each time some kilobytes are ready. The bytes may contain secrets, and are valid only
  ///     during the call.
  /// - Throws: The error of `output`.
  public mutating func append<Failure: Error>(
    _ item: KeychainItem, to output: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    guard format.kinds.contains(item.kind) else { return }
    if format.containsOneTimePasswords, let password = OneTimePassword(item) {
      // Every such format records the digest, because the accounts of authenticator apps are compared with it.
      let isDuplicate = isDuplicate(recording: password)
      if isDuplicate, format.containsOnlyOneTimePasswords {
        counts.repeatedCount += 1
        return
      }
    }
    format.append(&self, item)
    try flush(to: output)
  }

  /// Appends an account from a file of an authenticator app, unless it is a duplicate.
  ///
  /// - Parameters:
  ///   - account: The account. A format without one-time passwords skips it.
  ///   - output: Writes the text, as in `append(_:to:)` for items.
  /// - Throws: The error of `output`.
  package mutating func append<Failure: Error>(
    _ account: AuthenticatorAccounts.Account, to output: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    guard format.containsOneTimePasswords else { return }
    let item = account.item
    guard let password = OneTimePassword(item) else { return counts.skip(item, "it is not an address") }
    guard !isDuplicate(recording: password) else {
      counts.repeatedCount += 1
      return
    }
    format.append(&self, item)
    try flush(to: output)
  }

  /// Records a one-time password, and returns whether it is a duplicate of an earlier one.
  private mutating func isDuplicate(recording password: OneTimePassword) -> Bool {
    guard let digest = password.digest else { return false }
    return !passwordDigests.insert(digest).inserted
  }

  private mutating func flush<Failure: Error>(
    to output: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    guard text.count >= Self.chunkByteCount else { return }
    try text.withBytes(output)
    text.removeAll()
  }

  /// Ends the export, and writes the remaining text.
  ///
  /// - Parameter output: Writes the text, as in `append(_:to:)`.
  /// - Returns: The counts of exported and omitted items.
  /// - Throws: The error of `output`.
  public consuming func end<Failure: Error>(
    to output: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) -> ItemExportCounts {
    format.end(&self)
    try text.withBytes(output)
    return counts
  }

  // MARK: Tables

  mutating func appendColumns(_ names: [String]) {
    text.append(names.joined(separator: ","))
    endLine()
  }

  /// Appends a name as a cell that a spreadsheet does not evaluate.
  mutating func appendName(_ name: String) {
    if CSV.isFormula(name) { counts.inertNameCount += 1 }
    text.appendQuoted(CSV.inert(name))
  }

  /// The bytes at the start of a cell that make a spreadsheet evaluate it.
  private static let formulaStarts = Array("=+-@\t\r\n".utf8)

  /// Appends a secret as a cell of a table, unchanged.
  mutating func appendSecret(_ bytes: UnsafeRawBufferPointer) {
    if bytes.first.map(Self.formulaStarts.contains) == true { counts.formulaSecretCount += 1 }
    text.appendQuoted(bytes)
  }

  mutating func endLine() { text.append("\r\n") }
}
