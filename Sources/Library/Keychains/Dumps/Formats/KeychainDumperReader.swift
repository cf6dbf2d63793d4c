import Basics
import KeychainFormats
import KeychainRules

/// A reader for the text that keychain_dumper prints: a heading for each item, and a line for each attribute
/// (`.keychainDumper`).
///
/// The text does not mark where a value ends, so a value with line breaks can look like another attribute or another
/// item. An item whose attributes are not exactly those that the program prints, in its order, is therefore not read at
/// all.
///
/// Source: ptoomey3/Keychain-Dumper, `main.m` of 2011 to 2020 (`printGenericPassword` and the others, `printToStdOut`).
enum KeychainDumperReader {
  /// The headings of items. Each is followed by a line of as many hyphens. An identity repeats its certificate and key.
  private static let headings: [(title: String, kind: ItemKind?)] = [
    ("Generic Password", .genericPassword), ("Internet Password", .internetPassword), ("Certificate", .certificate),
    ("Key", .key), ("Identity", nil),
  ]
  /// The sentences that the program prints if it finds no item of a class.
  private static let notices = headings.map { "No \($0.title) Keychain items found." } + ["Unknown Security Class"]
  private static let informationPrefix = "[INFO] "
  /// The line that the program prints before it asks for an access group.
  private static let groupListHeading = "Listing available Entitlement Groups:"
  private static let secretLabel = "Keychain Data"
  private static let protectionLabel = "Accessible Attribute"
  private static let unknownProtectionLabel = "Unknown Accessible Attribute"

  /// A label that the program prints for one kind.
  struct Label {
    let text: String
    /// The attribute; `nil` if the text does not contain its value.
    var code: AttributeCode?
    /// Whether every version prints it.
    var isRequired = true
  }

  /// Returns the labels of a kind, in the order in which the program prints them.
  private static func labels(of kind: ItemKind) -> [Label] {
    let commonLabels = [
      Label(text: "Entitlement Group", code: .accessGroup), Label(text: "Label", code: .label),
      Label(text: protectionLabel, code: .protection, isRequired: false),
      Label(text: unknownProtectionLabel, isRequired: false),
    ]
    switch kind {
    case .genericPassword:
      return [Label(text: "Service", code: .service), Label(text: "Account", code: .account)] + commonLabels
        + [
          Label(text: "Description", code: .itemDescription, isRequired: false),
          Label(text: "Comment", code: .comment, isRequired: false),
          Label(text: "Synchronizable", code: .synchronizable, isRequired: false),
          Label(text: "Generic Field", code: .generic), Label(text: secretLabel),
        ]
    case .internetPassword:
      return [Label(text: "Server", code: .server), Label(text: "Account", code: .account)] + commonLabels
        + [Label(text: secretLabel)]
    case .certificate:
      return [Label(text: "Summary")] + commonLabels
        + [
          Label(text: "Serial Number", code: .serialNumber), Label(text: "Subject Key ID", code: .subjectKeyID),
          Label(text: "Subject Key Hash", code: .publicKeyHash),
        ]
    case .key:
      return commonLabels
        + [
          Label(text: "Application Label", code: .applicationLabel),
          Label(text: "Application Tag", code: .applicationTag, isRequired: false),
        ]
    }
  }

  // MARK: Recognizing

  /// Returns whether a file that starts with these bytes may be such a text.
  static func hasSignature(_ start: [UInt8]) -> Bool {
    var lines = TextLines(start.prefix(KeychainDump.signatureByteCount))
    while let line = lines.next() {
      let line = withoutColor(line)
      if line.isEmpty { continue }
      return heading(line, before: lines) != nil || isNotice(line) || line.starts(with: "Service: ".utf8)
        || line.elementsEqual((informationPrefix + groupListHeading).utf8)
    }
    return false
  }

  /// Removes escape sequences for colors from the start of a line.
  private static func withoutColor(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var line = line
    while line.first == 0x1B, line.dropFirst().first == UInt8(ascii: "[") {
      let end = line.dropFirst(2).drop { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      guard end.first == UInt8(ascii: "m") else { return line }
      line = end.dropFirst()
    }
    return line
  }

  /// Returns the heading that a line and the one after it form; `nil` if they form none.
  private static func heading(_ line: ArraySlice<UInt8>, before lines: TextLines) -> (title: String, kind: ItemKind?)? {
    guard mayBePrinted(line), let heading = headings.first(where: { line.elementsEqual($0.title.utf8) }),
      let next = lines.peek(), next.count == line.count, next.allSatisfy({ $0 == UInt8(ascii: "-") })
    else { return nil }
    return heading
  }

  /// Returns whether the program may have printed a line, other than as part of a value. This decides quickly for most
  /// lines of a long value.
  fileprivate static func mayBePrinted(_ line: ArraySlice<UInt8>) -> Bool {
    guard let first = line.first else { return false }
    return (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first) || first == UInt8(ascii: "[")
  }

  private static func isNotice(_ line: ArraySlice<UInt8>) -> Bool {
    guard mayBePrinted(line) else { return false }
    let prefix = Array(informationPrefix.utf8)
    let sentence = line.starts(with: prefix) ? line.dropFirst(prefix.count) : line
    return notices.contains { sentence.elementsEqual($0.utf8) }
  }

  // MARK: Reading

  /// Reads all items.
  ///
  /// - Throws: `.unknownDump` if the text has no item and no notice; `.dumpOverLimit` if it has more entries than a
  ///   dump may have.
  static func read(_ bytes: [UInt8], _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    let isUTF8 = String(validating: bytes, as: UTF8.self) != nil
    let hasHeadings = containsHeading(bytes)
    var collector = DumpCollector(.keychainDumper, acceptingAtMost: limit)
    var current: DumperBlock?
    var hasNotice = false
    // The certificate and the key that follow the heading of an identity belong to it.
    var remainingIdentityParts = 0
    var wasBlank = true
    var lines = TextLines(bytes[...])
    while let raw = lines.next() {
      let line = withoutColor(raw)
      if isNotice(line) {
        try finish(&current, into: &collector, isUTF8)
        hasNotice = true
      } else if let itemHeading = heading(line, before: lines) {
        try finish(&current, into: &collector, isUTF8)
        _ = lines.next()
        if itemHeading.kind == nil {
          _ = try collector.nextEntry()
          collector.skip(.identity)
          remainingIdentityParts = 2
        } else if remainingIdentityParts > 0, itemHeading.kind == .certificate || itemHeading.kind == .key {
          remainingIdentityParts -= 1
        } else {
          remainingIdentityParts = 0
          current = itemHeading.kind.map { DumperBlock(kind: $0, labels: labels(of: $0)) }
        }
      } else if !hasHeadings, wasBlank, line.starts(with: "Service: ".utf8) {
        // The first versions print only generic passwords, without headings.
        try finish(&current, into: &collector, isUTF8)
        current = DumperBlock(kind: .genericPassword, labels: labels(of: .genericPassword))
        current?.append(line)
      } else {
        let isInSecret = current?.isInSecret ?? false
        current?.append(isInSecret ? raw : line)
      }
      wasBlank = line.isEmpty
    }
    try finish(&current, into: &collector, isUTF8)
    let dump = collector.dump()
    guard hasHeadings || hasNotice || dump.items.contains(where: { $0.item != nil }) else {
      throw KeyhaulError(.unknownDump, "it is text, but has no item as keychain_dumper prints it")
    }
    return dump
  }

  private static func containsHeading(_ bytes: [UInt8]) -> Bool {
    var lines = TextLines(bytes[...])
    while let line = lines.next() {
      if heading(withoutColor(line), before: lines) != nil { return true }
    }
    return false
  }

  private static func finish(
    _ block: inout DumperBlock?, into collector: inout DumpCollector, _ isUTF8: Bool
  ) throws(KeyhaulError) {
    guard var finished = block else { return }
    block = nil
    finished.finish()
    let position = try collector.nextEntry()
    guard !finished.values.isEmpty else {
      collector.skip(.notAnItem)
      return
    }
    guard finished.isComplete else {
      let fault = DumpFault(
        .malformed, "its lines are not those that keychain_dumper prints: it is cut off, or a value looks like a line")
      collector.append(
        DumpedItem(entry: position, kind: finished.kind, content: .undecryptable(fault, protection: nil)))
      return
    }
    collector.append(item(of: finished, at: position, isUTF8))
  }

  private static func item(of block: DumperBlock, at position: Int, _ isUTF8: Bool) -> DumpedItem {
    var entry = PropertyDictionary()
    var unusable: [AttributeCode] = []
    for label in block.labels {
      guard let code = label.code, let bytes = block.values[label.text] else { continue }
      guard let text = NextStepText.text(of: bytes, isUTF8: isUTF8) else {
        unusable.append(code)
        continue
      }
      // Foundation prints this for an absent value.
      guard text != "(null)", !text.isEmpty else { continue }
      if code == .protection {
        let constant = String(text.prefix { $0 != "," })
        entry[code.rawValue] = .string(ProtectionClass(named: constant)?.rawValue ?? constant)
        continue
      }
      switch DataDescription.read(text) {
      case .bytes(let bytes): entry[code.rawValue] = .data(bytes)
      case .incomplete: unusable.append(code)
      case .other: entry[code.rawValue] = .string(text)
      }
    }
    let reading = DumpValues.read(entry, as: block.kind, .typed)
    let content = content(reading.item, block, isUTF8)
    let hasSecret = if case .open = content { true } else { false }
    return DumpedItem(
      entry: position, kind: block.kind, content: content, unusableAttributes: (unusable + reading.unusable).sorted(),
      isSecretRendered: hasSecret)
  }

  private static func content(_ item: KeychainItem, _ block: DumperBlock, _ isUTF8: Bool) -> DumpedItem.Content {
    var item = item
    guard let bytes = block.values[secretLabel], !bytes.isEmpty else { return .attributesOnly(item, nil) }
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

/// The lines of an item in keychain_dumper's text.
private struct DumperBlock {
  let kind: ItemKind
  let labels: [KeychainDumperReader.Label]
  /// The value of each label, with line breaks if the value continues on other lines.
  private(set) var values: [String: [UInt8]] = [:]
  /// Whether a line looks like an attribute at a position where the program does not print it, or the last line is
  /// missing.
  private var isAmbiguous = false
  /// The index of the first label that can still follow.
  private var nextLabelIndex = 0
  /// The label whose value is being read, or `nil`.
  private var currentLabel: String?
  private var value: [UInt8] = []

  init(kind: ItemKind, labels: [KeychainDumperReader.Label]) {
    self.kind = kind
    self.labels = labels
  }

  private var isPassword: Bool { kind == .genericPassword || kind == .internetPassword }
  /// Whether the current line belongs to the secret, whose lines can have any content.
  var isInSecret: Bool { isPassword && currentLabel == labels.last?.text }

  /// Whether the lines are those that the program prints.
  var isComplete: Bool { !isAmbiguous && labels.allSatisfy { !$0.isRequired || values[$0.text] != nil } }

  /// Adds a line.
  mutating func append(_ line: ArraySlice<UInt8>) {
    if KeychainDumperReader.mayBePrinted(line), let index = labels.firstIndex(where: { starts(line, with: $0.text) }) {
      guard index >= nextLabelIndex, !isInSecret else {
        isAmbiguous = true
        return
      }
      storeValue()
      currentLabel = labels[index].text
      nextLabelIndex = index + 1
      value = Array(line.dropFirst(labels[index].text.utf8.count + 2))
      return
    }
    // Certificates and keys have more lines, which are not read: flags, and the contents as PEM.
    if !isPassword,
      nextLabelIndex == labels.count || line.isEmpty || labels[nextLabelIndex...].allSatisfy({ !$0.isRequired })
    {
      storeValue()
      currentLabel = nil
      nextLabelIndex = labels.count
      return
    }
    guard currentLabel != nil else {
      if !line.isEmpty { isAmbiguous = true }
      return
    }
    value.append(UInt8(ascii: "\n"))
    value += line
  }

  /// Ends the item. The program prints an empty line after a secret, so the text is truncated if the line is missing.
  mutating func finish() {
    if isInSecret {
      if value.last == UInt8(ascii: "\n") { value.removeLast() } else { isAmbiguous = true }
    }
    storeValue()
    currentLabel = nil
  }

  private mutating func storeValue() {
    guard let currentLabel else { return }
    values[currentLabel] = value
    value = []
  }

  /// Returns whether a line begins with a label, a colon and a blank. An editor may have removed the blank at the end.
  private func starts(_ line: ArraySlice<UInt8>, with label: String) -> Bool {
    guard line.starts(with: label.utf8) else { return false }
    let separator = line.dropFirst(label.utf8.count).prefix(2)
    return separator.elementsEqual(": ".utf8) || separator.elementsEqual(":".utf8)
  }
}

/// Text in the encoding of NeXTSTEP, which keychain_dumper prints, or in UTF-8 if the file was converted.
private enum NextStepText {
  /// The characters of the bytes from 0x80 to 0xFD; 0xFE and 0xFF have none.
  ///
  /// Source: Unicode, "NextStep Encoding to Unicode".
  private static let characters: [UInt16] = [
    0x00A0, 0x00C0, 0x00C1, 0x00C2, 0x00C3, 0x00C4, 0x00C5, 0x00C7, 0x00C8, 0x00C9, 0x00CA, 0x00CB, 0x00CC, 0x00CD,
    0x00CE, 0x00CF, 0x00D0, 0x00D1, 0x00D2, 0x00D3, 0x00D4, 0x00D5, 0x00D6, 0x00D9, 0x00DA, 0x00DB, 0x00DC, 0x00DD,
    0x00DE, 0x00B5, 0x00D7, 0x00F7, 0x00A9, 0x00A1, 0x00A2, 0x00A3, 0x2044, 0x00A5, 0x0192, 0x00A7, 0x00A4, 0x2019,
    0x201C, 0x00AB, 0x2039, 0x203A, 0xFB01, 0xFB02, 0x00AE, 0x2013, 0x2020, 0x2021, 0x00B7, 0x00A6, 0x00B6, 0x2022,
    0x201A, 0x201E, 0x201D, 0x00BB, 0x2026, 0x2030, 0x00AC, 0x00BF, 0x00B9, 0x02CB, 0x00B4, 0x02C6, 0x02DC, 0x00AF,
    0x02D8, 0x02D9, 0x00A8, 0x00B2, 0x02DA, 0x00B8, 0x00B3, 0x02DD, 0x02DB, 0x02C7, 0x2014, 0x00B1, 0x00BC, 0x00BD,
    0x00BE, 0x00E0, 0x00E1, 0x00E2, 0x00E3, 0x00E4, 0x00E5, 0x00E7, 0x00E8, 0x00E9, 0x00EA, 0x00EB, 0x00EC, 0x00C6,
    0x00ED, 0x00AA, 0x00EE, 0x00EF, 0x00F0, 0x00F1, 0x0141, 0x00D8, 0x0152, 0x00BA, 0x00F2, 0x00F3, 0x00F4, 0x00F5,
    0x00F6, 0x00E6, 0x00F9, 0x00FA, 0x00FB, 0x0131, 0x00FC, 0x00FD, 0x0142, 0x00F8, 0x0153, 0x00DF, 0x00FE, 0x00FF,
  ]

  /// Returns the text of bytes; `nil` if a byte has no character.
  static func text(of bytes: [UInt8], isUTF8: Bool) -> String? {
    if isUTF8 { return String(validating: bytes, as: UTF8.self) }
    var text = ""
    return decode(bytes) { text.unicodeScalars.append($0) } ? text : nil
  }

  /// Returns the UTF-8 bytes of a secret, in memory that is overwritten when it is released; `nil` if a byte has no
  /// character.
  static func sensitiveBytes(of bytes: [UInt8], isUTF8: Bool) -> SensitiveBytes? {
    if isUTF8 { return SensitiveBytes(copying: bytes) }
    var buffer = SensitiveBuffer()
    let isText = decode(bytes) { scalar in
      for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { buffer.append(byte) }
    }
    return isText ? buffer.bytes() : nil
  }

  private static func decode(_ bytes: [UInt8], _ append: (Unicode.Scalar) -> Void) -> Bool {
    for byte in bytes {
      guard byte >= 0x80 else {
        append(Unicode.Scalar(byte))
        continue
      }
      let index = Int(byte) - 0x80
      guard characters.indices.contains(index), let scalar = Unicode.Scalar(characters[index]) else { return false }
      append(scalar)
    }
    return true
  }
}
