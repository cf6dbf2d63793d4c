import Basics
import Testing

/// A strict reader for pages. Unlike a browser, it requires well-formed XML: closed elements, quoted attributes, and
/// escaped characters.
struct PageReader {
  struct Fault: Error, CustomStringConvertible {
    let description: String
  }

  /// The names of the elements, in the order of their start tags.
  private(set) var elements: [String] = []
  private(set) var attributes: Set<String> = []
  /// The texts between tags with their elements, with entities decoded.
  private(set) var texts: [(element: String, text: String)] = []

  /// The parts of a page that must not depend on a name in it.
  struct Structure: Equatable {
    let elements: [String]
    let attributes: Set<String>
  }

  /// The elements and attributes. A command has a `span` for each of its words, so these elements are left out.
  var structure: Structure { Structure(elements: elements.filter { $0 != "span" }, attributes: attributes) }

  private static let entities = ["lt": "<", "gt": ">", "amp": "&", "quot": "\"", "#39": "'"]

  init(_ page: String) throws {
    let doctype = "<!DOCTYPE html>\n"
    guard page.hasPrefix(doctype) else { throw Fault(description: "no document type") }
    var remaining = page.dropFirst(doctype.count)
    var openElements: [String] = []
    while let next = remaining.first {
      if next == "<" {
        let tag = remaining.prefix { $0 != ">" }
        remaining = remaining.dropFirst(tag.count + 1)
        try read(tag: tag.dropFirst(), &openElements)
      } else {
        let text = remaining.prefix { $0 != "<" }
        remaining = remaining.dropFirst(text.count)
        try read(text: text, in: openElements.last)
      }
    }
    guard openElements.isEmpty else { throw Fault(description: "left open: \(openElements)") }
  }

  private mutating func read(text: Substring, in element: String?) throws {
    let decoded = element == "style" ? String(text) : try Self.decodingEntities(text)
    if let element { texts.append((element, decoded)) }
  }

  /// Reads a tag without its angle brackets.
  private mutating func read(tag: Substring, _ openElements: inout [String]) throws {
    if tag.first == "/" {
      let name = String(tag.dropFirst())
      guard openElements.popLast() == name else {
        throw Fault(description: "</\(name)> does not close the last element")
      }
      return
    }
    let isVoid = tag.last == "/"
    let body = isVoid ? tag.dropLast() : tag
    let name = String(body.prefix { $0 != " " })
    guard !name.isEmpty, name.allSatisfy({ $0.isLetter || $0.isNumber }) else {
      throw Fault(description: "<\(body)>")
    }
    elements.append(name)
    try read(attributes: body.dropFirst(name.count), of: name)
    if !isVoid { openElements.append(name) }
  }

  private mutating func read(attributes text: Substring, of element: String) throws {
    var remaining = text
    var names: Set<String> = []
    while remaining.first == " " {
      remaining = remaining.dropFirst()
      let name = String(remaining.prefix { $0 != "=" })
      remaining = remaining.dropFirst(name.count)
      guard remaining.hasPrefix("=\"") else { throw Fault(description: "\(element) \(name): no quotes") }
      let value = remaining.dropFirst(2).prefix { $0 != "\"" }
      remaining = remaining.dropFirst(value.count + 3)
      guard names.insert(name).inserted else { throw Fault(description: "\(element) \(name): twice") }
      _ = try Self.decodingEntities(value)
      attributes.insert(name)
    }
    guard remaining.isEmpty else { throw Fault(description: "\(element): \(remaining)") }
  }

  private static func decodingEntities(_ text: Substring) throws -> String {
    var parts = text.split(separator: "&", omittingEmptySubsequences: false)[...]
    var decoded = String(parts.popFirst() ?? "")
    for part in parts {
      let name = part.prefix { $0 != ";" }
      guard let character = entities[String(name)], name.count < part.count else {
        throw Fault(description: "entity &\(part.prefix(8))")
      }
      decoded += character + part.dropFirst(name.count + 1)
    }
    return decoded
  }

  /// The text that a user sees.
  var visibleText: String { texts.filter { $0.element != "style" }.map(\.text).joined(separator: " ") }

  func texts(of element: String) -> [String] { texts.filter { $0.element == element }.map(\.text) }
}
