extension JSONValue {
  /// The document on lines of its own, two spaces a level.
  func text() -> String {
    var result = ""
    write(to: &result, indent: 0)
    return result
  }

  /// The document on one line.
  func compactText() -> String {
    var result = ""
    write(to: &result, indent: nil)
    return result
  }

  /// Writes the document of an object that has fields, and after them an array too long to be held: its elements are
  /// written as they come.
  func write(
    endingIn tail: some ReportTail, to body: (String) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    var head = String(text().dropLast("\n}".count)) + ",\n  "
    Self.write(tail.field, to: &head)
    try body(head + ": [")
    var isEmpty = true
    try tail.forEachElement { (element) throws(CommandFailure) in
      var text = isEmpty ? "\n    " : ",\n    "
      element.write(to: &text, indent: 4)
      isEmpty = false
      try body(text)
    }
    try body(isEmpty ? "]\n}" : "\n  ]\n}")
  }

  private func write(to result: inout String, indent: Int?) {
    switch self {
    case .null: result += "null"
    case .boolean(let value): result += value ? "true" : "false"
    case .integer(let value): result += String(value)
    // JSON has no form for infinities; none of our reports has a number that could be one.
    case .number(let value): result += value.isFinite ? String(value) : "null"
    case .string(let value): Self.write(value, to: &result)
    case .array(let elements):
      Self.write(elements, brackets: ("[", "]"), to: &result, indent: indent) { element, result, indent in
        element.write(to: &result, indent: indent)
      }
    case .object(let fields):
      Self.write(fields, brackets: ("{", "}"), to: &result, indent: indent) { field, result, indent in
        Self.write(field.0, to: &result)
        result += indent == nil ? ":" : ": "
        field.1.write(to: &result, indent: indent)
      }
    }
  }

  private static func write<Element>(
    _ elements: [Element], brackets: (String, String), to result: inout String, indent: Int?,
    each: (Element, inout String, Int?) -> Void
  ) {
    result += brackets.0
    let inner = indent.map { $0 + 2 }
    for (index, element) in elements.enumerated() {
      if index > 0 { result += "," }
      if let inner { result += "\n" + String(repeating: " ", count: inner) }
      each(element, &result, inner)
    }
    if let indent, !elements.isEmpty { result += "\n" + String(repeating: " ", count: indent) }
    result += brackets.1
  }

  /// Everything that a terminal would act on or hide is escaped too, so that a document can be looked at.
  private static func write(_ text: String, to result: inout String) {
    result += "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case " "..."~": result.unicodeScalars.append(scalar)
      default:
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator:
          for unit in String(scalar).utf16 {
            let digits = String(unit, radix: 16)
            result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
          }
        default:
          result.unicodeScalars.append(scalar)
        }
      }
    }
    result += "\""
  }
}
