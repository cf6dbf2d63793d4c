import KeyhaulKit

/// A writer for a part of a page. Its output is both HTML and well-formed XML.
///
/// Names of elements and attributes are string literals. All other text is escaped, so a name from a backup cannot become
/// markup, reorder the text around it, or hide.
struct HTMLWriter: Sendable {
  /// The HTML that was written.
  private(set) var html = ""

  init() {}

  typealias Attributes = KeyValuePairs<StaticString, String>
  typealias Body = (inout HTMLWriter) -> Void

  /// The maximum number of Unicode scalars of a name on a page.
  static let maximumNameLength = 160

  /// Writes an element with content.
  mutating func element(_ name: StaticString, _ attributes: Attributes = [:], _ body: Body) {
    open(name, attributes)
    html += ">"
    body(&self)
    html += "</\(name)>"
  }

  /// Writes an element that contains text.
  mutating func element(_ name: StaticString, _ attributes: Attributes, _ text: String) {
    element(name, attributes) { $0.text(text) }
  }

  /// Writes an element without attributes that contains text.
  mutating func element(_ name: StaticString, _ text: String) { element(name, [:], text) }

  /// Writes an element without content.
  mutating func voidElement(_ name: StaticString, _ attributes: Attributes = [:]) {
    open(name, attributes)
    html += "/>"
  }

  /// Writes text, which may contain names.
  mutating func text(_ text: String) { html += Self.escaped(text) }

  /// Writes a sentence whose names are already escaped.
  mutating func escapedText(_ text: String) { html += Self.escaped(text, keepingEscapes: true) }

  /// Writes a name from a backup. Its writing direction does not affect the text around it.
  mutating func name(_ name: String) {
    element("bdi") { $0.text(Self.shortened(name)) }
  }

  /// Writes a style sheet, unchanged.
  mutating func style(_ sheet: String) { html += "<style>\(sheet)</style>" }

  /// Writes a line break, to make the source of the page readable.
  mutating func newLine() { html += "\n" }

  private mutating func open(_ name: StaticString, _ attributes: Attributes) {
    html += "<\(name)"
    for (key, value) in attributes { html += " \(key)=\"\(Self.escaped(value))\"" }
  }

  /// Returns text without markup and without invisible characters, which become visible escapes.
  ///
  /// - Parameters:
  ///   - text: The text.
  ///   - keepingEscapes: Whether the text already contains escapes, which stay as they are.
  static func escaped(_ text: String, keepingEscapes: Bool = false) -> String {
    let visible = UntrustedText.escaped(text, keepingEscapes: keepingEscapes)
    guard visible.utf8.contains(where: { "<>&\"'".utf8.contains($0) }) else { return visible }
    var result = ""
    for scalar in visible.unicodeScalars {
      switch scalar {
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "&": result += "&amp;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// Returns a name, or its beginning and an ellipsis if it has more Unicode scalars than the limit.
  static func shortened(_ name: String, to limit: Int = maximumNameLength) -> String {
    let scalars = name.unicodeScalars
    guard let end = scalars.index(scalars.startIndex, offsetBy: limit, limitedBy: scalars.endIndex),
      end != scalars.endIndex
    else { return name }
    return String(String.UnicodeScalarView(scalars[..<end])) + "…"
  }
}

/// The Content Security Policy of a page. It allows one style sheet, and nothing else: no scripts, no requests, and no
/// forms.
///
/// Source: W3C, Content Security Policy Level 3.
enum ContentPolicy {
  /// Returns the policy that allows only this style sheet, by its digest.
  ///
  /// - Throws: `.cryptoFailed` if the digest cannot be computed.
  static func allowing(style sheet: String) throws(DataProtectionError) -> String {
    let digest = Base64Digits.text(of: try Digest.sha256(Array(sheet.utf8)))
    return "default-src 'none'; style-src 'sha256-\(digest)'; base-uri 'none'; form-action 'none'"
  }
}
