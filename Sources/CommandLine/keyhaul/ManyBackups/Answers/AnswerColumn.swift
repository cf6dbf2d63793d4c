import KeyhaulKit

/// A fact of a verb's document that stands in a table of many answers.
struct AnswerColumn: Sendable {
  let name: String
  private let read: @Sendable (JSONValue) -> JSONValue?

  init(_ name: String, _ read: @escaping @Sendable (JSONValue) -> JSONValue?) {
    self.name = name
    self.read = read
  }

  /// The member of a document that is reached by these names.
  init(_ name: String, at path: String...) {
    self.init(name) { document in path.reduce(document) { $0?[$1] } }
  }

  /// The text of a cell; empty where the document does not say it.
  func text(in document: JSONValue?) -> String {
    switch document.flatMap(read) {
    case .integer(let value): String(value)
    case .string(let value): value
    case .boolean(let value): value ? "true" : "false"
    case .number(let value): String(value)
    case nil, .null, .sensitive, .array, .elements, .object: ""
    }
  }
}
