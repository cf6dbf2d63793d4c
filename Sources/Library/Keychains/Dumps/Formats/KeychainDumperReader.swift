import Basics
import KeychainFormats
import KeychainRules

/// A reader for the text that keychain_dumper prints: a heading for each item, and a line for each attribute
/// (`.keychainDumper`).
///
/// ```
/// Generic Password
/// ----------------
/// Service: mail
/// Account: anna
/// …
/// Keychain Data: secret
///
/// ```
///
/// An item whose lines are not exactly those that the program prints is not read at all (`KeychainDumperBlock`).
///
/// Source: ptoomey3/Keychain-Dumper, `main.m` of 2011 to 2020 (`printGenericPassword` and its siblings, `printToStdOut`).
enum KeychainDumperReader {
  /// The heading of an item. A line with as many hyphens follows it.
  private struct Heading {
    let title: String
    /// The kind of item, or `nil` if it is an identity, which repeats its certificate and its key.
    let kind: ItemKind?
  }

  private static let headings = [
    Heading(title: "Generic Password", kind: .genericPassword),
    Heading(title: "Internet Password", kind: .internetPassword), Heading(title: "Certificate", kind: .certificate),
    Heading(title: "Key", kind: .key), Heading(title: "Identity", kind: nil),
  ]
  /// The sentences that the program prints if it finds no item of a class.
  private static let notices = headings.map { "No \($0.title) Keychain items found." } + ["Unknown Security Class"]
  private static let informationPrefix = "[INFO] "
  /// The line that the program prints before it asks for an access group.
  private static let groupListHeading = "Listing available Entitlement Groups:"
  /// The start of a generic password's first line.
  private static let servicePrefix = "Service: "

  /// Returns whether a file that starts with these bytes may be text that keychain_dumper printed.
  static func hasSignature(_ start: [UInt8]) -> Bool {
    var lines = TextLines(start.prefix(KeychainDump.signatureByteCount))
    while let line = lines.next() {
      let line = withoutColor(line)
      if line.isEmpty { continue }
      return heading(line, before: lines) != nil || isNotice(line) || line.starts(with: servicePrefix.utf8)
        || line.elementsEqual((informationPrefix + groupListHeading).utf8)
    }
    return false
  }

  /// Reads all items.
  ///
  /// - Throws: `.unknownDump` if the text has no item and no notice; `.dumpOverLimit` if it has more entries than a
  ///   dump may have.
  static func read(_ bytes: [UInt8], _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    var parser = Parser(bytes, acceptingAtMost: limit)
    return try parser.dump()
  }

  // MARK: Lines

  /// Removes escape sequences for colors, such as `ESC[31m`, from the start of a line.
  private static func withoutColor(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let escape: UInt8 = 0x1B
    var line = line
    while line.first == escape, line.dropFirst().first == UInt8(ascii: "[") {
      let end = line.dropFirst(2).drop { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      guard end.first == UInt8(ascii: "m") else { return line }
      line = end.dropFirst()
    }
    return line
  }

  /// Returns the heading that a line and the following line form, or `nil` if they do not form one.
  private static func heading(_ line: ArraySlice<UInt8>, before lines: TextLines) -> Heading? {
    guard KeychainDumperBlock.mayBePrinted(line),
      let heading = headings.first(where: { line.elementsEqual($0.title.utf8) }),
      let next = lines.peek(), next.count == line.count, next.allSatisfy({ $0 == UInt8(ascii: "-") })
    else { return nil }
    return heading
  }

  private static func containsHeading(_ bytes: [UInt8]) -> Bool {
    var lines = TextLines(bytes[...])
    while let line = lines.next() {
      if heading(withoutColor(line), before: lines) != nil { return true }
    }
    return false
  }

  private static func isNotice(_ line: ArraySlice<UInt8>) -> Bool {
    guard KeychainDumperBlock.mayBePrinted(line) else { return false }
    let prefix = Array(informationPrefix.utf8)
    let sentence = line.starts(with: prefix) ? line.dropFirst(prefix.count) : line
    return notices.contains { sentence.elementsEqual($0.utf8) }
  }
}

extension KeychainDumperReader {
  /// Reads the lines of a text in order.
  private struct Parser {
    private var lines: TextLines
    private var collector: DumpCollector
    private let isUTF8: Bool
    private let hasHeadings: Bool
    /// The item whose lines are being read, or `nil` between items.
    private var currentItem: KeychainDumperBlock?
    /// The number of following items that belong to an identity: its certificate and its key.
    private var remainingIdentityParts = 0
    private var hasNotice = false
    private var wasPreviousLineBlank = true

    init(_ bytes: [UInt8], acceptingAtMost limit: Int) {
      lines = TextLines(bytes[...])
      collector = DumpCollector(.keychainDumper, acceptingAtMost: limit)
      isUTF8 = String(validating: bytes, as: UTF8.self) != nil
      hasHeadings = containsHeading(bytes)
    }

    mutating func dump() throws(KeyhaulError) -> KeychainDump {
      while let line = lines.next() { try read(line) }
      try finishItem()
      let dump = collector.dump()
      guard hasHeadings || hasNotice || dump.items.contains(where: { $0.item != nil }) else {
        throw KeyhaulError(.unknownDump, "it is text, but has no item as keychain_dumper prints it")
      }
      return dump
    }

    private mutating func read(_ printedLine: ArraySlice<UInt8>) throws(KeyhaulError) {
      let line = withoutColor(printedLine)
      if isNotice(line) {
        try finishItem()
        hasNotice = true
      } else if let heading = heading(line, before: lines) {
        try finishItem()
        // Skips the line of hyphens.
        _ = lines.next()
        try beginItem(heading.kind)
      } else if !hasHeadings, wasPreviousLineBlank, line.starts(with: servicePrefix.utf8) {
        // The first versions print only generic passwords, without headings.
        try finishItem()
        currentItem = KeychainDumperBlock(kind: .genericPassword)
        currentItem?.append(line)
      } else {
        let isInSecret = currentItem?.isInSecret ?? false
        currentItem?.append(isInSecret ? printedLine : line)
      }
      wasPreviousLineBlank = line.isEmpty
    }

    /// Begins the item below a heading.
    ///
    /// - Parameter kind: The kind of item, or `nil` if it is an identity.
    private mutating func beginItem(_ kind: ItemKind?) throws(KeyhaulError) {
      guard let kind else {
        _ = try collector.countEntry()
        collector.skip(.identity)
        remainingIdentityParts = 2
        return
      }
      if remainingIdentityParts > 0, kind == .certificate || kind == .key {
        remainingIdentityParts -= 1
      } else {
        remainingIdentityParts = 0
        currentItem = KeychainDumperBlock(kind: kind)
      }
    }

    private mutating func finishItem() throws(KeyhaulError) {
      guard var block = currentItem else { return }
      currentItem = nil
      block.finish()
      let position = try collector.countEntry()
      guard !block.values.isEmpty else { return collector.skip(.notAnItem) }
      guard block.isComplete else {
        let fault = DumpFault(
          .malformed,
          "its lines are not those that keychain_dumper prints: it is cut off, or a value looks like a line")
        return collector.append(
          DumpedItem(entryPosition: position, kind: block.kind, content: .undecryptable(fault, protection: nil)))
      }
      collector.append(item(of: block, at: position))
    }

    private func item(of block: KeychainDumperBlock, at position: Int) -> DumpedItem {
      let (attributes, unusableAttributes) = attributes(of: block)
      let reading = DumpValues.read(attributes, as: block.kind, style: .typed)
      let content = content(reading.item, block)
      let hasSecret = if case .open = content { true } else { false }
      return DumpedItem(
        entryPosition: position, kind: block.kind, content: content,
        unusableAttributes: (unusableAttributes + reading.unusableAttributes).sorted(), isSecretRendered: hasSecret)
    }

    /// Returns the attributes of an item, and the codes of attributes with unusable values.
    private func attributes(
      of block: KeychainDumperBlock
    ) -> (attributes: PropertyDictionary, unusableAttributes: [AttributeCode]) {
      var attributes = PropertyDictionary()
      var unusableAttributes: [AttributeCode] = []
      for label in block.labels {
        guard let code = label.code, let bytes = block.values[label.text] else { continue }
        guard let text = NextStepText.text(of: bytes, isUTF8: isUTF8) else {
          unusableAttributes.append(code)
          continue
        }
        // Foundation prints this for an absent value.
        guard text != "(null)", !text.isEmpty else { continue }
        if code == .protection {
          let constant = String(text.prefix { $0 != "," })
          attributes[code.rawValue] = .string(ProtectionClass(named: constant)?.rawValue ?? constant)
          continue
        }
        switch DataDescription.read(text) {
        case .bytes(let bytes): attributes[code.rawValue] = .data(bytes)
        case .incomplete: unusableAttributes.append(code)
        case .other: attributes[code.rawValue] = .string(text)
        }
      }
      return (attributes, unusableAttributes)
    }

    private func content(_ item: KeychainItem, _ block: KeychainDumperBlock) -> DumpedItem.Content {
      var item = item
      guard let bytes = block.values[KeychainDumperBlock.secretLabel], !bytes.isEmpty else {
        return .attributesOnly(item, nil)
      }
      // The program writes these words if the secret is not text, and if it could not be read.
      if bytes.elementsEqual("(null)".utf8) || bytes.elementsEqual("<Not Accessible>".utf8) {
        return .attributesOnly(item, DumpFault(.malformed, "the tool could not show the secret as text"))
      }
      guard let secret = NextStepText.sensitiveBytes(of: bytes, isUTF8: isUTF8) else {
        return .attributesOnly(item, DumpFault(.malformed, "the secret has bytes that are not text in its encoding"))
      }
      item.secret = secret
      return .open(item)
    }
  }
}
