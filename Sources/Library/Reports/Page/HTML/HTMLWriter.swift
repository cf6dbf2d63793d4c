package import KeyhaulKit

/// A piece of a page, written element by element.
///
/// Names of elements and attributes are literals of the program; every other text goes through `escaped`, so that no
/// name out of a backup can become markup, reorder the words around it or hide. What is written is HTML and well-formed
/// XML at the same time.
package struct HTMLWriter: Sendable {
  package private(set) var text = ""

  package init() {}

  package typealias Attributes = KeyValuePairs<StaticString, String>
  package typealias Body = (inout HTMLWriter) -> Void

  /// The most Unicode scalars of a name that a page shows.
  package static let maximumNameLength = 160

  /// An element with content.
  package mutating func element(_ name: StaticString, _ attributes: Attributes = [:], _ body: Body) {
    open(name, attributes)
    text += ">"
    body(&self)
    text += "</\(name)>"
  }

  package mutating func element(_ name: StaticString, _ attributes: Attributes, _ words: String) {
    element(name, attributes) { $0.words(words) }
  }

  package mutating func element(_ name: StaticString, _ words: String) { element(name, [:], words) }

  /// An element without content.
  package mutating func voidElement(_ name: StaticString, _ attributes: Attributes = [:]) {
    open(name, attributes)
    text += "/>"
  }

  /// Our own words, with names in them where they occur.
  package mutating func words(_ words: String) { text += Self.escaped(words) }

  /// A sentence of the library, in which names are escaped already.
  package mutating func sentence(_ words: String) { text += Self.escaped(words, keepingEscapes: true) }

  /// A name out of a backup inside a sentence: kept from lending its writing direction to the words around it.
  package mutating func name(_ name: String) {
    element("bdi") { $0.words(Self.shortened(name)) }
  }

  /// The style sheet as it is: a literal of the program.
  package mutating func style(_ sheet: String) { text += "<style>\(sheet)</style>" }

  /// A line break between parts of the page, for people who read its source.
  package mutating func newLine() { text += "\n" }

  private mutating func open(_ name: StaticString, _ attributes: Attributes) {
    text += "<\(name)"
    for (key, value) in attributes { text += " \(key)=\"\(Self.escaped(value))\"" }
  }

  /// Everything that a browser would act on or not show, spelled out.
  ///
  /// - Parameter keepingEscapes: As `UntrustedText.shown` takes it.
  package static func escaped(_ words: String, keepingEscapes: Bool = false) -> String {
    let shown = UntrustedText.escaped(words, keepingEscapes: keepingEscapes)
    guard shown.utf8.contains(where: { "<>&\"'".utf8.contains($0) }) else { return shown }
    var result = ""
    for scalar in shown.unicodeScalars {
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

  /// A name's beginning, where it is longer than anybody reads.
  package static func shortened(_ name: String, to limit: Int = maximumNameLength) -> String {
    let scalars = name.unicodeScalars
    guard let end = scalars.index(scalars.startIndex, offsetBy: limit, limitedBy: scalars.endIndex),
      end != scalars.endIndex
    else { return name }
    return String(String.UnicodeScalarView(scalars[..<end])) + "…"
  }
}

/// What a browser may do for a page: use its one style sheet, and nothing else. No script runs, nothing is fetched, no
/// form is sent, whatever slipped into the page.
///
/// Source: W3C, Content Security Policy Level 3.
package enum ContentPolicy {
  /// The policy that admits this style sheet by its digest, and no other style.
  package static func admitting(style sheet: String) throws(DataProtectionError) -> String {
    let digest = Base64Digits.text(of: try Digest.sha256(Array(sheet.utf8)))
    return "default-src 'none'; style-src 'sha256-\(digest)'; base-uri 'none'; form-action 'none'"
  }
}
