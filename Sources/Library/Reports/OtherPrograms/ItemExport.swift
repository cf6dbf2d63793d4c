public import KeyhaulKit

/// Items of a keychain in a form that other programs read.
public struct ItemExport: Sendable {
  /// The whole text; wiped with its last holder.
  public let contents: SensitiveBytes
  /// The counts of exported and omitted items.
  public let counts: ItemExportCounts
  /// The items that belong into it and have no form there.
  public let leftOut: [ItemExportCounts.LeftOut]

  /// Makes an export of items that are held. For very many of them there is `ItemExportWriter`.
  ///
  /// - Parameters:
  ///   - items: Of any kind; the format chooses.
  ///   - format: Not the document.
  ///   - made: The time of the export, for formats that state it.
  public init(_ items: [KeychainItem], as format: ExportFormat, made: KeychainDate) {
    var text = SensitiveBuffer()
    var writer = ItemExportWriter(format, made: made)
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

extension Backup {
  /// Exports the items that can be decrypted, with their secrets.
  ///
  /// - Parameters:
  ///   - format: The format of another program; not `.document`.
  ///   - made: The time of the export, for formats that state it.
  public func export(as format: ExportFormat, made: KeychainDate) -> ItemExport {
    ItemExport(items.compactMap(\.item), as: format, made: made)
  }
}

/// The counts of exported and omitted items.
public struct ItemExportCounts: Sendable, Hashable {
  /// The number of exported items.
  public internal(set) var count = 0
  /// The number of secrets in plain text.
  public internal(set) var secretCount = 0
  /// The number of items of the format's kinds that it cannot represent.
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
  /// The number of one-time passwords that are omitted because the export already contains the same one.
  public internal(set) var repeatedCount = 0
  /// The reason why the export cannot be made; `nil` if it can. If there is one, discard what was written.
  public internal(set) var failure: ItemExportFailure?

  /// An item that has no form in the export.
  public struct LeftOut: Sendable, Hashable {
    /// The names that it is known by.
    public let identity: ItemDescriptor
    /// The reason, as the end of a sentence: "its secret is not text".
    public let reason: String
  }

  mutating func leave(_ item: KeychainItem, _ reason: String) {
    leftOutCount += 1
    lastLeftOut = LeftOut(identity: ItemDescriptor(item), reason: reason)
    if firstLeftOut == nil { firstLeftOut = lastLeftOut }
  }
}

/// A reason why an export cannot be made.
public enum ItemExportFailure: Sendable, Hashable {
  /// libqrencode 4, which makes QR codes, cannot be loaded.
  case noCodeLibrary
  /// There is not enough memory for a QR code.
  case noMemory
  /// The frame of a page cannot be made, for this reason.
  case page(_ reason: String)
}

extension KeychainItem {
  /// A text attribute, data that is text, or a number; empty where there is none.
  func words(_ code: AttributeCode) -> String { ItemDescriptor.text(self[code]) ?? "" }

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
