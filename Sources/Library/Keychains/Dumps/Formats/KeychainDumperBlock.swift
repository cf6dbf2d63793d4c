import KeychainFormats

/// The lines of an item in keychain_dumper's text: a label, a colon and a value in each line.
///
/// The text does not mark where a value ends, so a value with line breaks can look like another attribute. The lines are
/// therefore complete only if their labels are exactly the labels that the program prints, in the program's order.
struct KeychainDumperBlock {
  /// A label that the program prints for one kind of item.
  struct Label {
    let text: String
    /// The attribute, or `nil` if the text does not contain its value.
    var code: AttributeCode?
    /// Whether every version prints the label.
    var isRequired = true
  }

  static let secretLabel = "Keychain Data"

  let kind: ItemKind
  /// The labels of the kind, in the order in which the program prints them.
  let labels: [Label]
  /// The value of each label, with line breaks if the value continues on other lines.
  private(set) var values: [String: [UInt8]] = [:]
  /// Whether a line looks like an attribute at a position where the program does not print it, or the last line is
  /// missing.
  private var isAmbiguous = false
  /// The index of the first label that can still follow.
  private var nextLabelIndex = 0
  /// The label whose value is being read, or `nil` if there is none.
  private var currentLabel: String?
  private var currentValue: [UInt8] = []

  init(kind: ItemKind) {
    self.kind = kind
    labels = Self.labels(of: kind)
  }

  private var isPassword: Bool { kind == .genericPassword || kind == .internetPassword }
  /// Whether the current line belongs to the secret, whose lines can have any content.
  var isInSecret: Bool { isPassword && currentLabel == labels.last?.text }

  /// Whether the lines are those that the program prints.
  var isComplete: Bool { !isAmbiguous && labels.allSatisfy { !$0.isRequired || values[$0.text] != nil } }

  /// Returns whether a line may be more than a part of a value: it starts like a label, a heading or a notice. This is a
  /// fast check for the lines of a long value.
  static func mayBePrinted(_ line: ArraySlice<UInt8>) -> Bool {
    guard let first = line.first else { return false }
    return (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first) || first == UInt8(ascii: "[")
  }

  // MARK: Lines

  /// Adds a line.
  mutating func append(_ line: ArraySlice<UInt8>) {
    if let index = labelIndex(in: line) {
      beginValue(ofLabelAt: index, in: line)
    } else if areAttributesComplete(before: line) {
      storeValue()
      nextLabelIndex = labels.count
    } else if currentLabel != nil {
      currentValue.append(UInt8(ascii: "\n"))
      currentValue += line
    } else if !line.isEmpty {
      isAmbiguous = true
    }
  }

  /// Ends the item. The program prints an empty line after a secret, so the text is truncated if the line is missing.
  mutating func finish() {
    if isInSecret {
      if currentValue.last == UInt8(ascii: "\n") { currentValue.removeLast() } else { isAmbiguous = true }
    }
    storeValue()
  }

  private mutating func beginValue(ofLabelAt index: Int, in line: ArraySlice<UInt8>) {
    guard index >= nextLabelIndex, !isInSecret else {
      isAmbiguous = true
      return
    }
    storeValue()
    let label = labels[index].text
    currentLabel = label
    currentValue = Array(line.dropFirst(label.utf8.count + Self.separator.utf8.count))
    nextLabelIndex = index + 1
  }

  private mutating func storeValue() {
    guard let label = currentLabel else { return }
    values[label] = currentValue
    currentLabel = nil
    currentValue = []
  }

  /// Returns whether all required attributes come before a line that has no label. Certificates and keys have more lines,
  /// which are not read: flags, and the contents as PEM.
  private func areAttributesComplete(before line: ArraySlice<UInt8>) -> Bool {
    !isPassword && (line.isEmpty || labels[nextLabelIndex...].allSatisfy { !$0.isRequired })
  }

  /// Returns the index of the label at the start of a line, or `nil` if the line has none.
  private func labelIndex(in line: ArraySlice<UInt8>) -> Int? {
    guard Self.mayBePrinted(line) else { return nil }
    return labels.firstIndex { Self.hasLabel($0.text, line) }
  }

  private static let separator = ": "

  /// Returns whether a line begins with a label and the separator. At the end of a line, an editor may have removed the
  /// blank.
  private static func hasLabel(_ label: String, _ line: ArraySlice<UInt8>) -> Bool {
    guard line.starts(with: label.utf8) else { return false }
    let next = line.dropFirst(label.utf8.count).prefix(separator.utf8.count)
    return next.elementsEqual(separator.utf8) || next.elementsEqual(":".utf8)
  }

  // MARK: Labels

  private static func labels(of kind: ItemKind) -> [Label] {
    let commonLabels = [
      Label(text: "Entitlement Group", code: .accessGroup), Label(text: "Label", code: .label),
      Label(text: "Accessible Attribute", code: .protection, isRequired: false),
      Label(text: "Unknown Accessible Attribute", isRequired: false),
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
}
